"""Public suites of SDKs and drivers, run outside the repository beside servers of their own.

    served.py     servers at fixed ports and names, in a network of their own
    running.py    sources by name from a registry, an environment, the run
    nosql.py table.py mongo.py     one function for each suite
    outcome.py    its report as counts; causes.py: why a test fails, where it is known

`python -m tools.run_suites NAME` runs one and keeps its counts in bench/results/.
"""
