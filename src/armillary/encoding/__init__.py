"""Bytes and texts that outlive a process: what is hashed, what is on disk, what clients keep.

    paths          "/a/b" ⇄ ("a", "b"), and the value an item has there
    partition_key  definitions and key values: parsed, checked, compared
    hashing        key value → effective partition key (EPK), identity, digest; EPKs inside keys
    rids           resource ids
    etags          entity tags
    terms          order-preserving index terms
    models         what an API means by a value: comparison, terms, keys (json_model, framed_model,
                   bson/, edm/)
    documents      the stored form of an item
    geo/           boxes and cells of the spatial index

Nothing here reads a store or knows a container: values in, bytes or texts out. A released form
never changes; docs/formats.md shows each byte for byte.
"""
