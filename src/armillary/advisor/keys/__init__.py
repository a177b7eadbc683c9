"""Candidates: partition keys that somebody might choose, from text, data and workload."""
