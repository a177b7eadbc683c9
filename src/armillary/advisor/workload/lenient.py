"""Queries as people write them down from memory, in words the database understands.

    c.when = @w                      c["when"] = @w                     names that are reserved
    c.a = 1 AND c.b BETWEEN 1 AND 2  c.a = 1 AND (c.b BETWEEN 1 AND 2)  brackets it insists on

The database refuses both, and the answer says so; but what was meant is plain, and an operation
that is left out of a workload changes the advice. Nothing else is guessed.
"""

import re
from typing import Final

_TEXTS: Final = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
_MEMBER: Final = re.compile(r"(?<=[\w\]])\.([A-Za-z_]\w*)\b(?!\s*\()")
_VALUE: Final = r"""(?:@\w+|-?\d+(?:\.\d+)?|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_PATH: Final = r"""[A-Za-z_]\w*(?:\[(?:"[^"]*"|'[^']*'|\d+)\])+"""
_BETWEEN: Final = re.compile(
    rf"({_PATH}\s+(?:NOT\s+)?BETWEEN\s+{_VALUE}\s+AND\s+{_VALUE})", re.IGNORECASE
)


def what_is_meant(text: str) -> str:
    """The same query with every name quoted, and brackets around BETWEEN."""
    parts = _TEXTS.split(text)  # every second one is a text of the query, which stays as it is
    quoted = [
        part if at % 2 else _MEMBER.sub(lambda found: f'["{found[1]}"]', part)
        for at, part in enumerate(parts)
    ]
    return _BETWEEN.sub(r"(\1)", "".join(quoted))
