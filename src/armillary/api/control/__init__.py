"""The controls of a server: topology, faults, time, snapshots, metrics. Under `/_armillary/`.

One folder although it is large: each module is one control, a few routes of one table (`routes`),
and none knows another.
"""
