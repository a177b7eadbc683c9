"""What an application does how often, from a file, a trace or a scenario; and where each operation
would go under a key."""
