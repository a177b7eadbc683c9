"""Two engines, the same random commands: every reply and every row at the end must be equal.

The memory engine is the picture of what all should do; each of the others is held against it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.commands import LAST, command, first_rows
from tests.support.engines import ENGINES, open_test_engine

from armillary.engine.base import META_KEY, Engine
from armillary.engine.runs.blocks import FIRST_OWN
from armillary.limits import KEY_BYTES_MAX

Pair = tuple[Engine, Engine]

keys = st.one_of(
    st.sampled_from([b"a", b"b", b"ab", b"a\x00", b"a\xff", b"\xef", b"\x00\x00"]),
    # From F0 on, keys belong to an engine that has runs.
    st.binary(min_size=1, max_size=3).filter(lambda key: key != META_KEY and key[0] < FIRST_OWN),
    st.sampled_from([b"k" * KEY_BYTES_MAX, b"k" * (KEY_BYTES_MAX - 1)]),
)
bounds = st.one_of(keys, st.sampled_from([b"", LAST, b"k" * 600]))
values = st.binary(max_size=5)
limits = st.none() | st.integers(0, 4)

step = st.one_of(
    st.tuples(st.just("put"), keys, values),
    st.tuples(st.just("put_many"), st.lists(st.tuples(keys, values), max_size=6)),
    st.tuples(st.just("delete"), keys),
    st.tuples(st.just("delete_many"), st.lists(keys, max_size=4)),
    st.tuples(st.just("get"), bounds.filter(bool)),
    st.tuples(st.just("get_many"), st.lists(keys, max_size=4)),
    st.tuples(st.just("via"), keys, st.sampled_from([b"", b"a"]).filter(bool)),
    st.tuples(st.just("scan"), bounds, bounds, st.booleans(), limits),
    st.tuples(st.just("meta")),
    st.tuples(st.just("count_meta")),
    st.tuples(st.just("put"), st.just(b"k" * (KEY_BYTES_MAX + 1)), values),
    st.tuples(st.just("fail"), st.just("refused")),
)
steps = st.recursive(
    st.lists(step, max_size=5),
    lambda inner: st.lists(
        step | st.tuples(st.just("nested"), inner, st.booleans()), min_size=1, max_size=5
    ),
    max_leaves=8,
)
#: A group is sent at once, without waiting: (which space, its steps) each.
groups = st.lists(
    st.lists(st.tuples(st.integers(0, 2), steps), min_size=1, max_size=5), min_size=1, max_size=5
)

numbers = itertools.count(100, 10)  # spaces nobody has used


@pytest.fixture(scope="module", params=[param for param in ENGINES if param.id != "memory"])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    folder: Path = tmp_path_factory.mktemp("mirror") / "data"
    engines = open_test_engine("memory", folder), open_test_engine(request.param, folder)
    yield engines
    for engine in engines:
        engine.close()


def replies(engine: Engine, first: int, group: list[tuple[int, list[Any]]]) -> list[Any]:
    futures = [engine.submit(first + number, command(*steps)) for number, steps in group]
    wait(futures)
    return [
        future.result() if (error := future.exception()) is None else (type(error), str(error))
        for future in futures
    ]


def everything(engine: Engine, space: int) -> list[Any]:
    with engine.read(space) as reader:
        return [reader.meta, *reader.scan(b"", LAST)]


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(groups=groups)
def test_replies_and_rows_are_equal(pair: Pair, groups: list[Any]) -> None:
    first = next(numbers)
    for engine in pair:
        for space in (first, first + 1):  # and the third is never there
            engine.create_space(space, first_rows())
    try:
        for group in groups:
            memory, other = (replies(engine, first, group) for engine in pair)
            assert memory == other
        for space in (first, first + 1):
            memory, other = (everything(engine, space) for engine in pair)
            assert memory == other
    finally:
        for engine in pair:
            for space in (first, first + 1):
                engine.drop_space(space)
