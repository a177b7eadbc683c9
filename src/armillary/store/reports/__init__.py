"""How data and load are spread, read from counters that are kept: for operators, portal, command
line and builds."""
