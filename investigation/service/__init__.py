"""An HTTP service and a web page over one app and one engine.

Read `api.py` first: it is the list of what can be asked. `access.py` says who may ask,
`admission.py` how much, `events.py` how progress is told, `demo.py` how a person watches a worker
die; `application.py` puts it together. Nothing here knows which engine it serves: that is said
once, by `two-workers serve --engine NAME`.
"""
