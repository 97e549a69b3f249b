"""The mind of the scripted model: what it knows, what it has seen, what it does next, what it says.

It is a stand-in for a language model where there is no network and no key: no intelligence, but an
honest routine that an engineer on call would follow. It knows nothing of a corpus but what stands
in the messages that it is sent, and it is a pure function of them.
"""
