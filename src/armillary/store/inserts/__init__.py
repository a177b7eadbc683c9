"""Many new items of one logical partition in one command, for protocols that insert arrays."""
