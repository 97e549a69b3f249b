"""The agent app: an investigator of log files that both engines run, unchanged.

Read `steps.py` (what the agent can ask for), `agent.py` (the agent) and `effects.py` (how each
step is carried out) in this order. `app.py` puts them together. Nothing here knows an engine.

This file stays empty of imports: an engine may import `investigation.agent` in a place where only
light modules are welcome.
"""
