"""The version of the package, where every layer may read it (the package itself is at the top)."""

VERSION = "0.1.0"
