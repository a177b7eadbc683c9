"""Items on the wire: one at a time, batches, feeds, queries; and where each request belongs."""
