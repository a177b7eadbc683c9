"""Fast paths: point reads, short queries and creates from bytes to bytes. Each is a decoder of the
operation that the general path asks the store for, and a form of the answer that its encoder
writes. What a decoder does not know takes the general path."""
