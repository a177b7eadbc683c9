"""A container of one physical partition as it was at one moment, over many requests."""
