"""Requests for one entity from bytes to bytes: reads and updates in flat functions, all others by
way of the service. tests/property/test_table_fast.py compares each with the general path."""
