"""What each physical partition consumed: counted as it happens, added up over processes."""
