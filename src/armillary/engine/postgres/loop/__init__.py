"""Reads and groups of writes on the event loop of a server: its connections, and the groups."""
