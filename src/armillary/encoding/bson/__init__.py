"""MongoDB documents: BSON values, their order, their bytes and the form in which they are stored.

values  BSON ⇄ Python, and the one order over all types
codec   BSON byte by byte, where `bson` does not give a document back as it was
stored  a document as an item, and back
model   the value model: index terms, comparison, keys
"""
