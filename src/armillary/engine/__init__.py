"""Ordered bytes with transactions. In: commands and keys. Out: rows, and durable acknowledgements.

`base` is the whole interface; `memory`, `lmdb` and `postgres` implement it; `open_engine` chooses
by address.
"""
