"""From measures to a reasoned choice."""
