"""Which physical partition owns a key. In: effective partition keys. Out: ranges.

`ranges` is the table of a container's physical partitions and the bisect over it. Next to it stand
the rules of throughput, as pure functions and small values that are stepped from outside:

    what does it cost     request_units
    may it run now        admission
    how many, how much    provisioning, offers, scaling, distribution, merging, autoscale
    how was it used       history, normalised, space_saving, heat

None of them reads a clock, a file or a thread: the store and the simulator drive the same code.
"""
