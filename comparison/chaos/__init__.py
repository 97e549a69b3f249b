"""Kill tests for any engine and any agent, as a pytest suite.

    pytest --pyargs comparison.chaos                                     both engines
    pytest --pyargs comparison.chaos --two-workers-engine=mine           an engine of your own
    pytest --pyargs comparison.chaos --two-workers-app=my.app:APP \
           --two-workers-payload='{"n": 1}' --two-workers-kills=5        an agent of your own

`test_any_engine.py` holds what every engine must survive, with an agent whose every execution
leaves a line outside of the engine. `test_any_agent.py` takes a fault-free run of an agent as its
oracle, kills workers in the middle of the same work, and compares. Workers are real processes,
started by the command line of the seam; the server is the engine's own unless the environment
names one.

The suite runs from any folder, under whatever pytest configuration is there or none; it needs
`pip install 'two-workers[chaos,embedded]'` and the extra of each engine. An app of your own is
looked for where pytest is called.
"""
