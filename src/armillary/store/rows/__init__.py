"""The rows of a space: the layout of its keys, the fence and counters of `meta`, and the small rows
alongside the items. In: values. Out: keys and bytes."""
