"""The change feed: the log of a space, and what a reader of it is given."""
