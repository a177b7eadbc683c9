"""Sockets: the only async code. In: connections. Out: requests to a service, and its responses."""
