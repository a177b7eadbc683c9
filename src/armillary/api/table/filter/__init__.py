"""`$filter`: text in; out come a tree (`grammar`), a predicate over items (`predicate`), and the
conditions of a plan that index and partition key can use (`conditions`)."""
