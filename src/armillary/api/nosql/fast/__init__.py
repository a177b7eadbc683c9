"""Fast paths: point reads, short queries and creates from bytes to bytes. What they do not know
takes the general path."""
