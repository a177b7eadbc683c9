"""`armillary query`."""
