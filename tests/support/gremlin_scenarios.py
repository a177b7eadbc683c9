"""The scenarios of TinkerPop's feature files, read for graphs that others hold.

    Scenario: name
      Given the modern graph                        or: the empty graph, and the initializer of …
      And using the parameter vid1 defined as "v[marko].id"
      And the traversal of  …
      Then the result should be unordered           a table of expected values

Values become the texts of `gremlin_text.py`.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.gremlin_strategies import EdgeMade, GraphMade, VertexMade

#: What the reference has in its section 8, with modulators and predicates.
STEPS = frozenset(
    [
        "addV",
        "addE",
        "from",
        "to",
        "property",
        "drop",
        "V",
        "E",
        "out",
        "in",
        "both",
        "outE",
        "inE",
        "bothE",
        "outV",
        "inV",
        "bothV",
        "otherV",
        "has",
        "hasLabel",
        "hasId",
        "hasNot",
        "hasKey",
        "hasValue",
        "is",
        "where",
        "filter",
        "and",
        "or",
        "not",
        "values",
        "properties",
        "valueMap",
        "id",
        "label",
        "key",
        "value",
        "count",
        "sum",
        "min",
        "max",
        "mean",
        "fold",
        "unfold",
        "group",
        "groupCount",
        "project",
        "select",
        "as",
        "by",
        "order",
        "dedup",
        "limit",
        "range",
        "tail",
        "sample",
        "coin",
        "path",
        "simplePath",
        "cyclicPath",
        "tree",
        "repeat",
        "times",
        "until",
        "emit",
        "loops",
        "choose",
        "option",
        "union",
        "coalesce",
        "optional",
        "local",
        "map",
        "flatMap",
        "sideEffect",
        "identity",
        "inject",
        "constant",
        "store",
        "aggregate",
        "cap",
        "iterate",
        "eq",
        "neq",
        "lt",
        "lte",
        "gt",
        "gte",
        "inside",
        "outside",
        "between",
        "within",
        "without",
        "startingWith",
        "endingWith",
        "containing",
        "notStartingWith",
        "notEndingWith",
        "notContaining",
        "negate",
    ]
)
PEOPLE = (("1", "marko", 29), ("2", "vadas", 27), ("4", "josh", 32), ("6", "peter", 35))
MODERN = GraphMade(
    (
        *(VertexMade(id, "person", (("name", name), ("age", age))) for id, name, age in PEOPLE),
        VertexMade("3", "software", (("name", "lop"), ("lang", "java"))),
        VertexMade("5", "software", (("name", "ripple"), ("lang", "java"))),
    ),
    tuple(
        EdgeMade(id, label, source, target, (("weight", weight),))
        for id, label, source, target, weight in (
            ("7", "knows", "1", "2", 0.5), ("8", "knows", "1", "4", 1.0),
            ("9", "created", "1", "3", 0.4), ("10", "created", "4", "5", 1.0),
            ("11", "created", "4", "3", 0.4), ("12", "created", "6", "3", 0.2),
        )
    ),
)  # fmt: skip
NAMES = {dict(one.properties)["name"]: one.id for one in MODERN.vertices}
EDGES = {
    (source, edge.label, target): edge.id
    for edge in MODERN.edges
    for source, one in NAMES.items()
    for target, other in NAMES.items()
    if (one, other) == (edge.source, edge.target)
}


class Unreadable(Exception):
    """The scenario needs something that a text does not carry; says what."""


@dataclass(slots=True)
class Scenario:
    name: str
    graph: str
    script: str
    initial: str | None
    parameters: dict[str, str]
    then: str
    table: list[str] = field(default_factory=list)
    counts: list[tuple[int, str]] = field(default_factory=list)

    @property
    def calls(self) -> set[str]:
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', self.script)
        return set(re.findall(r"(\w+)\(", bare))

    @property
    def only_listed_steps(self) -> bool:
        return self.calls <= STEPS

    def inlined(self, text: str | None = None) -> str:
        """The script with its parameters written out."""
        text = self.script if text is None else text
        for name in sorted(self.parameters, key=len, reverse=True):
            if re.search(rf"\b{name}\b", text):
                shown = literal(self.parameters[name])
                text = re.sub(rf"\b{name}\b", lambda _, shown=shown: shown, text)  # type: ignore[misc]
        return _with_text_ids(text)


def _with_text_ids(text: str) -> str:
    return re.sub(r"property\((T\.id|id), ?(\d+)L?\)", r'property(\1, "\2")', text)


def read(jar: Path) -> Iterator[Scenario]:
    with zipfile.ZipFile(jar) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".feature"):
                yield from scenarios(archive.read(name).decode())


def scenarios(text: str) -> Iterator[Scenario]:
    for part in re.split(r"\n\s*Scenario: ", text)[1:]:
        title, _, body = part.partition("\n")
        body = re.split(r"\n\s*@", body)[0]
        scripts = dict(re.findall(r'(traversal|initializer) of\n\s*"""\n(.*?)\n\s*"""', body, re.S))
        then = re.search(r"Then (.*)", body)
        graph = re.search(r"Given the (\w+) graph", body)
        if "traversal" not in scripts or then is None or graph is None:
            continue
        yield Scenario(
            title.strip(),
            graph[1],
            _joined(scripts["traversal"]),
            _joined(scripts["initializer"]) if "initializer" in scripts else None,
            dict(re.findall(r'using the parameter (\w+) defined as "(.*)"', body)),
            then[1],
            [row.strip() for row in re.findall(r"^\s*\|(.*)\|\s*$", body, re.M)][1:],
            [
                (int(count), query.replace('\\"', '"'))
                for count, query in re.findall(
                    r'graph should return (\d+) for count of "(.*)"', body
                )
            ],
        )


def _joined(text: str) -> str:
    return "".join(line.strip() for line in text.splitlines())


def literal(value: str) -> str:
    """A parameter as it is written in a script."""
    if found := re.fullmatch(r"d\[(.*)\]\.([a-z])", value):
        return found[1] + (".0" if found[2] in "df" and "." not in found[1] else "")
    if found := re.fullmatch(r"d\[(.*)\]", value):
        return found[1]
    if found := re.fullmatch(r"v\[(\w+)\]\.s?id", value):
        return f"'{_vertex(found[1])}'"
    if found := re.fullmatch(r"e\[(\w+)-(\w+)->(\w+)\]\.s?id", value):
        return f"'{EDGES[found[1], found[2], found[3]]}'"
    if found := re.fullmatch(r"[ls]\[(.*)\]", value):
        return "[" + ", ".join(map(literal, _split(found[1]))) + "]"
    if value in ("true", "false", "null"):
        return value
    if re.match(r"[a-z]+\[", value):
        raise Unreadable(f"parameters such as {value[:2]}…]")
    return json.dumps(value)


def _vertex(name: str) -> str:
    if name not in NAMES:
        raise Unreadable("vertices of a graph that the scenario makes")
    return NAMES[name]


def _split(text: str) -> list[str]:
    parts: list[str] = []
    depth = 0
    for one in text.split(","):
        if depth:
            parts[-1] += "," + one
        else:
            parts.append(one)
        depth += sum(one.count(each) for each in "[{") - sum(one.count(each) for each in "]}")
    return [one for one in parts if one]


def expected(value: str) -> str:
    """A cell of a table as the text of a result."""
    value = value.strip()
    if found := re.fullmatch(r"d\[(.*)\]\.?[a-z]?", value):
        number = float(found[1])
        return str(int(number)) if number == int(number) else f"{number:.6g}"
    if found := re.fullmatch(r"v\[(.*)\]", value):
        return f"v[{_vertex(found[1])}]"
    if found := re.fullmatch(r"[ve]\[(.*)\]\.s?id", value):
        return literal(value)
    if found := re.fullmatch(r"e\[(\w+)-(\w+)->(\w+)\]", value):
        key = (found[1], found[2], found[3])
        if key not in EDGES:
            raise Unreadable("edges of a graph that the scenario makes")
        return f"e[{EDGES[key]}]"
    if found := re.fullmatch(r"vp\[(.*)-(\w+)->(.*)\]", value):
        return f"p[{found[2]}={expected(found[3])}]"
    if found := re.fullmatch(r"p\[(.*)\]", value):
        return "path(" + ",".join(map(expected, _split(found[1]))) + ")"
    if found := re.fullmatch(r"[ls]\[(.*)\]", value):
        return "[" + ",".join(sorted(map(expected, _split(found[1])))) + "]"
    if found := re.fullmatch(r"m\[(.*)\]", value):
        return _map(json.loads(found[1]))
    if value in ("true", "false", "null"):
        return value
    if found := re.fullmatch(r"str\[(.*)\]", value):
        return f"'{found[1]}'"
    if re.fullmatch(r"(t|D|M|dt|c)\[.*\]", value):
        raise Unreadable(f"results such as {value[:2]}…]")
    return f"'{value}'"


def _map(value: object) -> str:
    if isinstance(value, dict):
        rows = sorted(f"{expected(key)}={_map(one)}" for key, one in value.items())
        return "{" + ",".join(rows) + "}"
    if isinstance(value, list):
        return "[" + ",".join(sorted(map(_map, value))) + "]"
    return expected(str(value).lower() if isinstance(value, bool) else str(value))
