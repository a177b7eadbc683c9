"""The items: one pass over them, a sample, and what their properties look like over time."""
