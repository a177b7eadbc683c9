"""`__.spatial` in scripts, held against the ST_… functions of queries: another program."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.scripts import CALM, World, world

Shape = dict[str, Any]

ASK = """function (pairs, names) {
  const found = (name, values) => {
    const made = __.spatial[name](...values);
    return made === undefined ? 'undefined' : made;
  };
  __.response.setBody(pairs.map((pair) => names.map((name) => found(name, pair))));
}"""
PAIRED = {"distance": "ST_DISTANCE", "within": "ST_WITHIN", "intersects": "ST_INTERSECTS"}
SINGLE = {"isValid": "ST_ISVALID", "isValidDetailed": "ST_ISVALIDDETAILED"}


@pytest.fixture(scope="module")
def here() -> Iterator[World]:
    with world(bounds=CALM) as made:
        made.container.create_item({"id": "1", "pk": "a"})
        yield made


def asked(here: World, functions: dict[str, str], given: list[tuple[Any, ...]]) -> list[list[Any]]:
    """The same by queries."""
    found = []
    for values in given:
        names = [f"@v{number}" for number in range(len(values))]
        columns = ", ".join(
            f"{function}({', '.join(names)}) ?? 'undefined'" for function in functions.values()
        )
        parameters = dict(zip(names, values, strict=True))
        found.append(next(here.container.query(f"SELECT VALUE [{columns}] FROM c", parameters)))
    return found


def point(x: float, y: float) -> Shape:
    return {"type": "Point", "coordinates": [x, y]}


def around(x: float, y: float, size: float, corners: int, clockwise: bool = False) -> list[Any]:
    turns = [2 * math.pi * at / corners for at in range(corners)]
    ring = [[x + size * math.cos(turn), y + size * math.sin(turn)] for turn in turns]
    ring.append(ring[0])
    return ring[::-1] if clockwise else ring


def some_shapes(seed: int, count: int) -> list[Shape]:
    chance = random.Random(seed)
    found: list[Shape] = []
    for _ in range(count):
        x, y = chance.uniform(-3, 3), chance.uniform(-3, 3)
        size, corners = chance.uniform(0.3, 3), chance.randrange(3, 7)
        line = [[x + chance.uniform(-2, 2), y + chance.uniform(-2, 2)] for _ in range(corners)]
        rings = [around(x, y, size, corners), around(x, y, size / 4, corners, clockwise=True)]
        found += [
            point(x, y),
            {"type": "LineString", "coordinates": line},
            {"type": "Polygon", "coordinates": rings[: chance.randrange(1, 3)]},
            {"type": "MultiPolygon", "coordinates": [rings, [around(x + 9, y, 1, 4)]]},
        ]
    return found


def test_relations_and_distances_are_those_of_queries(here: World) -> None:
    shapes = some_shapes(3, 9)
    pairs = [(one, two) for one in shapes[::3] for two in shapes[1::2]]
    ours = here.run(ASK, pairs, list(PAIRED))
    theirs = asked(here, PAIRED, pairs)
    assert {row[2] for row in theirs} == {True, False}
    assert {row[1] for row in theirs} == {True, False, "undefined"}
    for pair, mine, other in zip(pairs, ours, theirs, strict=True):
        assert mine[1:] == other[1:], pair
        assert mine[0] == pytest.approx(other[0], rel=1e-3, abs=1e-3), pair


def test_points_are_measured_on_the_ellipsoid(here: World) -> None:
    chance = random.Random(5)
    pairs = [
        tuple(point(chance.uniform(-180, 180), chance.uniform(-85, 85)) for _ in range(2))
        for _ in range(60)
    ]
    ours, theirs = here.run(ASK, pairs, ["distance"]), asked(here, {"d": "ST_DISTANCE"}, pairs)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine[0] == pytest.approx(other[0], rel=1e-9)


def test_the_antimeridian_and_clockwise_rings(here: World) -> None:
    over = [[175, -5], [-175, -5], [-175, 5], [175, 5], [175, -5]]
    outside = around(0, 0, 2, 4, clockwise=True)
    pairs = [
        (point(x, 0), {"type": "Polygon", "coordinates": [ring]})
        for x in (179, -179, 170, 0, 5)
        for ring in (over, outside)
    ]
    names = ["within", "intersects"]
    functions = {name: PAIRED[name] for name in names}
    assert here.run(ASK, pairs, names) == asked(here, functions, pairs)


BAD: list[Any] = [
    None,
    5,
    {},
    {"type": "Circle", "coordinates": []},
    {"type": "Point"},
    point(1, 91),
    point(181, 1),
    {"type": "LineString", "coordinates": [[1, 1]]},
    {"type": "Polygon", "coordinates": []},
    {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1]]]},
    {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]},
    {"type": "Polygon", "coordinates": [around(0, 0, 1, 4), around(9, 9, 1, 4)]},
    {"type": "MultiPolygon", "coordinates": []},
    {"type": "MultiPolygon", "coordinates": [[around(0, 0, 1, 4)], [around(0.5, 0, 1, 4)]]},
]


def test_what_is_wrong_with_a_shape_is_said_in_the_same_words(here: World) -> None:
    given = [(one,) for one in [*BAD, *some_shapes(4, 2)]]
    assert here.run(ASK, given, list(SINGLE)) == asked(here, SINGLE, given)
    pairs = [(one, point(0, 0)) for one in BAD]
    assert here.run(ASK, pairs, list(PAIRED)) == [["undefined"] * 3] * len(BAD)


def test_as_a_predicate(here: World) -> None:
    text = """function (centre) {
      __.filter((one) => __.spatial.distance(one.at, centre) < 200000, (e, found) => {
        if (e) throw e;
        __.response.setBody(found.map((one) => one.id));
      });
    }"""
    for number in range(5):
        here.container.create_item({"id": f"p{number}", "pk": "b", "at": point(number, 0)})
    assert here.run(text, point(0, 0), pk="b") == ["p0", "p1"]
