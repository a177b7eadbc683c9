"""The version of the package and how its extras are installed, where every layer may read it (the
package itself is at the top)."""

VERSION = "0.2.0"


def install_hint(extra: str) -> str:
    return f"pip install 'armillary[{extra}]' (in a checkout: pip install '.[{extra}]')"
