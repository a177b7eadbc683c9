"""Strings as the original counts them: in UTF-16 units, so 😀 has length 2.

Python counts code points. The two differ only when a character lies beyond U+FFFF; such a string is
spread into one Python character per unit, worked on with ordinary string methods, and put together
again. Every other string passes through untouched.
"""

from array import array


def spread(text: str) -> str:
    """One Python character per UTF-16 unit."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    return "".join(map(chr, array("H", text.encode("utf-16-le", "surrogatepass"))))


def gather(text: str) -> str:
    """Back to ordinary characters: two halves that meet become one, a half alone stays alone."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def count(text: str) -> int:
    return len(text) if text.isascii() else len(text) + sum(map("\uffff".__lt__, text))


def lower(text: str) -> str:
    """Invariant culture: one character becomes one character, and İ (U+0130) is left alone."""
    # Only İ grows and only Σ looks at its neighbours; without them the fast way is the same.
    if "İ" not in text and "Σ" not in text:
        return text.lower()
    return "".join(map(_lower_one, text))


def upper(text: str) -> str:
    """As `lower`: ß stays ß, and so does ı (U+0131)."""
    changed = text.upper()
    # Characters only ever grow: the same length means that each became one.
    if len(changed) == len(text) and "ı" not in text:
        return changed
    return "".join(map(_upper_one, text))


def _lower_one(character: str) -> str:
    lowered = character.lower()
    return lowered if len(lowered) == 1 and character != "İ" else character


def _upper_one(character: str) -> str:
    uppered = character.upper()
    return uppered if len(uppered) == 1 and character != "ı" else character
