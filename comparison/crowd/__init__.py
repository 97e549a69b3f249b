"""A crowd beside each campaign: tenants, limits, budgets, signals, and one run that kills.

What a campaign's investigations never need, a real fleet meets every day: somebody floods the
queue, a vendor allows so many calls at a time, a purse runs empty, an agent waits for a person, a
run takes its worker down again and again. So while the campaign goes on, a crowd of short runs goes
through all of that on the same engine with the same timings, with a worker paused and several
killed meanwhile. INV-SIGNAL, INV-CAP, INV-BUDGET, INV-FAIR and INV-BLAME are judged by it.

It has a server, a world and workers of its own, so that its limits bind nobody else and none of its
calls gets into the campaign's figures. What it costs them is processor time.

- `steps`, `agents`, `app`   the errand: an agent that asks, hears and, once, dies
- `script`                   who is in the crowd, under which limits
- `signals`                  words sent early, late, twice, and at the moment of parking
- `crowd`                    the whole of it, from the server's start to the engine at rest
- `rest`                     what the engine still counts when nothing runs any more
- `checks`                   the five invariants
"""
