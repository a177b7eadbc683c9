"""Background work: who does it (`leases`), when (`housekeeper`), and each bounded piece of it."""
