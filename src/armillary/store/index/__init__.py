"""What items put into the indexes of their container. In: an indexing policy and a document. Out:
index keys."""
