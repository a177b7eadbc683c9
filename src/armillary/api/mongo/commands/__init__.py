"""Commands by name: `table.py` lists every one, supported or not; the others
have their handlers."""
