"""Where the keys of a TOML text stand: path → line. The standard parser gives values only.

The text has been parsed before, so it is valid: this needs to know only where statements begin and
end. Keys inside an inline table or array stand on the line of the statement they are in.
"""

import re
from collections.abc import Mapping
from typing import TypeAlias

#: `("database", 0, "container", 2, "id")`: arrays of tables are counted from 0.
KeyPath: TypeAlias = tuple[str | int, ...]

_PART = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)\s*""")
# What may hide a bracket or a line end: strings of four kinds and comments.
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}\n]',
    re.DOTALL,
)


def key_lines(text: str) -> dict[KeyPath, int]:
    found: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    at = 0
    while at < len(text):
        if text[at] in " \t\r\n":
            at += 1
            continue
        line = text.count("\n", 0, at) + 1
        if text[at] == "#":
            at = _line_end(text, at)
        elif text[at] == "[":
            repeated = text.startswith("[[", at)
            names, at = _dotted(text, at + 1 + repeated)
            table = _resolve(names[:-1], counts)
            table = (*table, names[-1])
            if repeated:
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            else:
                table = _resolve(names, counts)
            found[table] = line
            at = _line_end(text, at)
        else:
            names, at = _dotted(text, at)
            for length in range(1, len(names) + 1):
                found.setdefault((*table, *names[:length]), line)
            at = _statement_end(text, at)
    return found


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int:
    """The line of the key, or of the nearest thing around it."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


def _dotted(text: str, at: int) -> tuple[list[str], int]:
    names = []
    while (part := _PART.match(text, at)) is not None:
        name = part[1]
        names.append(name[1:-1] if name[0] in "\"'" else name)
        at = part.end()
        if at >= len(text) or text[at] != ".":
            break
        at += 1
    return names, at


def _resolve(names: list[str], counts: Mapping[KeyPath, int]) -> KeyPath:
    """A header names the last table of an array without its number."""
    path: KeyPath = ()
    for name in names:
        path = (*path, name)
        if path in counts:
            path = (*path, counts[path])
    return path


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _statement_end(text: str, at: int) -> int:
    depth = 0
    for token in _TOKEN.finditer(text, at):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        elif token[0] == "\n" and depth == 0:
            return token.end()
    return len(text)
