"""Provisioned throughput and what operations cost: offers and their changes, the meter that admits
and charges every operation."""
