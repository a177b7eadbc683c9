"""Splits and merges while the application goes on. `runner` goes through the steps, `handlers` are
what happens inside the transactions of parents and children."""
