"""`armillary check`."""
