"""Which physical partition owns a key. In: effective partition keys. Out: ranges.

`ranges` is the table of a container's physical partitions and the bisect over it. Throughput,
splits and merges join it here.
"""
