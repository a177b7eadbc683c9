"""From the options of `armillary serve` to processes that serve, and back to nothing."""
