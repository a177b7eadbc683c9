"""Proof of a partition key before production: data and a workload in, a reasoned choice out.

candidates      what a key may be: its grammar, the values it gives an item, what to paste
filters         what a query text says about paths
workload        the workload file: operations, their rates, and where a key would send them
operations      one operation at one moment, from a trace or made up from a workload

polars, datasketches and plotly are imported only inside this package (extra `advisor`).
"""
