"""Write the reference pages of docs/ from the tables in the source, so that they can't fall behind.

    limits.md ← limits.py · steps.md ← steps.py · settings.md ← config.py · errors.md ← errors.py
    compatibility.md ← api/nosql/ · compatibility-table.md ← api/table/routes.py
    mongodb-compatibility.md ← api/mongo/ · gremlin-steps.md ← api/gremlin/steps/

`make docs` writes them; a test compares each page with what this would write.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

from armillary import limits
from armillary.api.errors import TABLE_PROBLEMS, WIRE, wire
from armillary.api.gremlin.steps.base import Spec
from armillary.api.gremlin.steps.table import MODULATORS, REFUSED, SOURCES
from armillary.api.gremlin.steps.table import STEPS as GREMLIN_STEPS
from armillary.api.mongo import compatibility as mongo_compatibility
from armillary.api.nosql import compatibility
from armillary.api.table import routes as table_routes
from armillary.config import VARIABLES, Settings
from armillary.server.command import FLAGS, SETTINGS
from armillary.steps import STEPS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def limits_page() -> str:
    """Headings are the `# --- heading (source) ---` lines without their source; notes are the
    comments beside the numbers.
    """
    parts = [
        "# Limits",
        "Every bound of the program, from `src/armillary/limits.py`. The sizes of partitions are "
        "[settings](settings.md) with these defaults, names with `_DEFAULT` are what you get "
        "without asking, the rest are fixed.",
    ]
    for title, body in _sections(Path(limits.__file__).read_text(encoding="utf-8")):
        rows = [_limit(found) for found in _LIMIT.finditer(body) if found["name"] not in _UNITS]
        if rows:
            heading = title[0].upper() + title[1:]
            parts += [f"## {heading}", _table(("limit", "value", "note"), rows)]
    return _page(parts)


_HEADING = re.compile(r"# --- (?P<title>[^(]*?)(?: \(.*\))? ---")
# `NAME = value  # note`; the formatter may put value and note in parentheses over several lines.
_LIMIT = re.compile(
    r"^(?P<name>[A-Z][A-Z0-9_]*) = (?P<value>\((?:.|\n)*?^\)|[^#\n]*)(?P<note>#.*)?", re.MULTILINE
)
_UNITS = {"KB", "MB", "GB"}  # words for the numbers below them, not limits


def _sections(source: str) -> list[tuple[str, str]]:
    pieces = _HEADING.split(source)
    return [("general", pieces[0]), *zip(pieces[1::2], pieces[2::2], strict=True)]


def _limit(found: re.Match[str]) -> tuple[str, str, str]:
    note = found["note"] or "".join(re.findall(r"#.*", found["value"]))
    return f"`{found['name']}`", f"{getattr(limits, found['name']):,}", note.lstrip("# ")


def steps_page() -> str:
    return _page(
        [
            "# Steps",
            "Work that must survive being cut short names its steps (`src/armillary/steps.py`). "
            "Crash tests kill the process at each of them; whatever a caller was told before has "
            "to be true after the restart.",
            _table(("step", "what is true when it is reached"), _named(STEPS)),
        ]
    )


def settings_page() -> str:
    default, meanings = Settings.default(), _meanings()
    flags = {VARIABLES[variable][:2]: flag for flag, (variable, _) in SETTINGS.items()} | FLAGS
    rows = [
        (
            f"`{section}.{key}`",
            f"`{name}`",
            f"`{flags[section, key]}`" if (section, key) in flags else "",
            f"`{getattr(getattr(default, section), key)}`",
            meanings[section, key],
        )
        for name, (section, key, _) in VARIABLES.items()
    ]
    return _page(
        [
            "# Settings",
            "Every setting of `src/armillary/config.py`. A flag of `armillary serve` goes before a "
            "variable, that before the file of `--config`, or without one `./armillary.toml`, and "
            "that before the default. `partition.bytes` is `bytes` in the section `[partition]` of "
            "the file ([configuration](configuration.md)). Sizes are whole numbers of bytes, or "
            "with a unit: `2MB`, `50GB`, `64MiB`. A misspelt name is refused.",
            _table(("setting", "variable", "flag", "default", "meaning"), rows),
        ]
    )


def _meanings() -> dict[tuple[str, str], str]:
    """(section, key) → the text under the key in the source."""
    sections = {type(getattr(Settings.default(), one.name)): one.name for one in fields(Settings)}
    found: dict[tuple[str, str], str] = {}
    for kind, section in sections.items():
        tree = ast.parse(inspect.cleandoc(inspect.getsource(kind))).body[0]
        assert isinstance(tree, ast.ClassDef)
        for one, following in pairwise([*tree.body, ast.Pass()]):
            if not isinstance(one, ast.AnnAssign) or not isinstance(one.target, ast.Name):
                continue
            text = ""
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                text = inspect.cleandoc(str(following.value.value)).replace("\n", " ")
            found[section, one.target.id] = text
    return found


def errors_page() -> str:
    rows = []
    for kind in WIRE:
        status, sub_status, code, message = wire(kind())
        meaning = inspect.cleandoc(vars(kind).get("__doc__") or message).replace("\n", " ")
        rows.append((f"`{kind.__name__}`", f"{status}/{sub_status}", f"`{code}`", meaning))
    return _page(
        [
            "# Errors",
            "Everything the program refuses or fails with is a subclass of "
            "`armillary.errors.DbError`, named by what the caller can do about it. Status, "
            "sub-status and code are what the NoSQL protocol says (`src/armillary/api/errors.py`).",
            _table(("error", "status", "code", "meaning"), rows),
        ]
    )


def compatibility_page() -> str:
    routes = [(one[0], f"`{one[1]}`", *one[2:]) for one in compatibility.route_rows()]
    gaps = "\n".join(f"- {gap}" for gap in compatibility.GAPS)
    likenesses = "\n".join(f"- {one}" for one in compatibility.LIKE_THE_SDKS)
    return _page(
        [
            "# Compatibility: API for NoSQL",
            "What the official SDKs find here, from the tables that the program itself works with. "
            "Every `*` in a path is a name or a resource id. Statuses are in [errors](errors.md).",
            "## Different from the original",
            gaps,
            "## Like the SDKs, where the documents say something else",
            likenesses,
            "## Routes",
            _table(("method", "path", "what it does", "different"), routes),
            "## Headers of requests",
            "All others are ignored.",
            _table(("header", "meaning"), _named(compatibility.REQUEST_HEADERS)),
            "## Headers of responses",
            _table(("header", "when"), _named(compatibility.RESPONSE_HEADERS)),
        ]
    )


def table_page() -> str:
    routes = [(one.method, f"`{one.shown}`", one.name, one.note) for one in table_routes.ROUTES]
    problems = sorted(
        {
            (f"`{code}`", str(status))
            for row in TABLE_PROBLEMS.values()
            for status, code in [(row.status, row.code)]
            + ([] if row.storage is None else [(row.storage.status, row.storage.code)])
        }
    )
    return _page(
        [
            "# Compatibility: API for Table",
            "Every route of `src/armillary/api/table/routes.py`, and every error code that a "
            "request can get besides those of the store. How to connect, and what is different "
            "from Cosmos DB and Storage: [table.md](table.md).",
            "## Routes",
            _table(("method", "path", "what it does", "note"), routes),
            "## Error codes",
            _table(("code", "status"), problems),
        ]
    )


def mongo_page() -> str:
    return _page(
        [
            "# Compatibility: API for MongoDB",
            "What drivers find here, from the tables that the program itself works with. How to "
            "use it: [MongoDB](mongodb.md).",
            "## Different from the original",
            "\n".join(f"- {gap}" for gap in mongo_compatibility.GAPS),
            "## What there is",
            _table(("", "names"), mongo_compatibility.rows()),
        ]
    )


def gremlin_steps_page() -> str:
    """Vertical bars in a cell would end it."""

    def shown(text: str) -> str:
        return f"`{text}`".replace("|", "\\|")

    served = [one for one in GREMLIN_STEPS.values() if not one.extra]
    extra = [one for one in GREMLIN_STEPS.values() if one.extra]
    head = ("step", "forms", "what it does")

    def row(one: Spec) -> tuple[str, ...]:
        return f"`{one.name}`", shown(one.forms), one.about.replace("|", "\\|")

    return _page(
        [
            "# Gremlin steps",
            "Every step of [the Gremlin API](gremlin.md), from the table the program works with. "
            "`t` is a traversal, `p` a predicate, `v` a value, `k` a property name, `..` several.",
            "## Steps",
            _table(head, [row(one) for one in served]),
            "## Words that belong to a step",
            _table(("word", "forms"), [(f"`{k}`", shown(v)) for k, v in MODULATORS.items()]),
            "## After `g`",
            _table(("word", "forms"), [(f"`{k}`", shown(v)) for k, v in SOURCES.items()]),
            "At the end, `executionProfile()` runs the traversal and tells what each step did; "
            "`toList()`, `next()` and `iterate()` are passed over.",
            "## Only with `strict = false`",
            "The service lacks them, and so does a strict server.",
            _table(head, [row(one) for one in extra]),
            "## Refused",
            "With the service's own text, `Unable to find any method '…'`: "
            + ", ".join(f"`{name}`" for name in REFUSED)
            + ".",
        ]
    )


PAGES: dict[str, Callable[[], str]] = {
    "mongodb-compatibility.md": mongo_page,
    "gremlin-steps.md": gremlin_steps_page,
    "limits.md": limits_page,
    "steps.md": steps_page,
    "settings.md": settings_page,
    "errors.md": errors_page,
    "compatibility.md": compatibility_page,
    "compatibility-table.md": table_page,
}


def _named(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(f"`{name}`", meaning) for name, meaning in table.items()]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _page(parts: list[str]) -> str:
    return "\n\n".join([parts[0], "*Made by `make docs`; not edited by hand.*", *parts[1:]]) + "\n"


def main() -> None:
    for name, render in PAGES.items():
        (DOCS / name).write_text(render(), encoding="utf-8")
        print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
