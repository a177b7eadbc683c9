"""What to do, in terms that no query language owns, and the rules that make it read less. In: nodes
of `query/expr`. Out: a plan, printed by `explain`."""
