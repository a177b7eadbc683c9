"""How many physical partitions there are and what each may spend: pure rules, for the store and the
simulator."""
