"""`armillary partitions`."""
