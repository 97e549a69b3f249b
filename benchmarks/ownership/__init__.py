"""What ownership costs when something breaks: a killed, a paused and a cancelled worker.

Real worker processes of this project and of its peers carry out one step that holds for as long as
it is told, and writes down when it begins, each time it is still at it, and how it ends. The times
are CLOCK_MONOTONIC, which all processes of a machine share; the record is a file, apart from the
database under test. How each library holds a step is in `benchmarks/peers/holders`.
"""
