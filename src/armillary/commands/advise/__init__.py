"""`armillary advise`."""
