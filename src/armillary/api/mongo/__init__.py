"""The MongoDB API: drivers connect unmodified; a collection is a container, its shard key the
partition key, `_id` the item's id.

    bytes ─▶ wire/      frames and messages, without sockets
          ─▶ session    one client: who it is, which command, what may run on the event loop
          ─▶ commands/  a table, name → handler; arguments checked, replies made
          ─▶ match/ update/ expressions/ aggregate/    the language: pure functions over documents
          ─▶ data/      documents in containers: reads, writes, cursors, transactions

Facts: the MongoDB reference; documents are stored as `encoding/bson/stored.py` says.
"""
