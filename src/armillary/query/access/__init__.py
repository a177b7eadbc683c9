"""Which index entries can answer a plan, and reading them. In: a filter or an order. Out: items of
one snapshot."""
