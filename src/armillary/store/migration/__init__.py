"""A container under another partition key: a copy into a new one, while the old one is used."""
