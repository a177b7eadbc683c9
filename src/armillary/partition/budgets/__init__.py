"""May this request run now: the budget of a second, and the ledgers that all processes share."""
