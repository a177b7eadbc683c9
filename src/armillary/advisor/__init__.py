"""Proof of a partition key before production: data and a workload in, a reasoned choice out.

candidates      what a key may be: its grammar, the values it gives an item, what to paste
filters         what a query text says about paths
workload        the workload file: operations, their rates, and where a key would send them
operations      one operation at one moment, from a trace or made up from a workload

reading/        data in any form, as frames of bounded size
survey          one pass over them: `columns` (values of each property), a sample of rows
sampled         the sample as numbers: the key of each row under any candidate
ring, timing    where keys lie, and how they come and go with time
targets, demand what is planned for; what the workload asks of each key
measures        the numbers of a candidate; `judging` gates and scores them
generating      which candidates there are
advising        all of it: candidates measured, judged, ranked
explaining, patterns, pasting, answer    the answer in words, as code, as JSON; `official` with it
traced, paging  a trace as a workload; the page of an advice
scenarios       worked examples with known answers

polars is imported only inside this package (extra `advisor`).
"""
