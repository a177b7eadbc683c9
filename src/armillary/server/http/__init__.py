"""HTTP/1.1 for every service that speaks it: requests out of bytes, answers in order, request
templates, the log of requests."""
