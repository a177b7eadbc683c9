"""`armillary replay`."""
