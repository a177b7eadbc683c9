"""`armillary demo`."""
