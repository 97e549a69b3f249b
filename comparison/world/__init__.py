"""The world: ground truth, in a process of its own that is never faulted.

It plays everything outside the workers: the model's vendor (the OpenAI chat-completions API), the
log tools and the sink of the final report. Because every paid call passes through it, its ledger
says what really happened, whatever an engine believes. It refuses a call whose fence is older
than one it has seen for the same key, as a careful vendor with fencing would.

It can *hold* a call, at its begin or just before its reply, until the harness has done something
to the worker that waits for it: so a fault lands on work in flight, at an exact point.
"""
