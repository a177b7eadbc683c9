"""Fast paths of the MongoDB API: finds of one document from bytes to bytes, inserts of one document
on their way to the writer. The handlers of `commands/` are the reference."""
