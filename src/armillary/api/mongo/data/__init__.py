"""Documents in containers: what collections are (`collections`), how they are read (`reads`) and
written (`writes`), and what outlives one command (`cursors`, `transactions`)."""
