"""`python -m two_workers.cli`: how a harness starts a worker with the interpreter it runs on."""

from two_workers.cli import main

main()
