"""The graph that steps walk: `elements` (what they see), `base` (what they ask), `store` (answers
from a container: its partitions, its index), `writes`."""
