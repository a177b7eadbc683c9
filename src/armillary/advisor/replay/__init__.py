"""The same operations under several partition keys, side by side."""
