"""`armillary simulate`."""
