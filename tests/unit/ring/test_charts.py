"""Charts beside the ring. Without these tests a column could be drawn against the wrong axis."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.rings import arcs, ring

from armillary.ring.charts import (
    BOTTOM,
    LABEL_WIDTH,
    TOP,
    Column,
    columns_svg,
    heatmap_svg,
    label_every,
    nice_above,
    traffic_svg,
)
from armillary.ring.model import HotKey
from armillary.ring.tables import keys_html, partitions_html

NS = "{http://www.w3.org/2000/svg}"


@given(st.floats(1e-6, 1e15))
def test_an_axis_ends_above_its_values_and_not_far_above(value: float) -> None:
    assert value <= nice_above(value) <= 2.5001 * value


@given(st.integers(1, 5000))
def test_labels_do_not_touch(count: int) -> None:
    width = 364 / count
    assert label_every(count, width) * width >= LABEL_WIDTH or label_every(count, width) >= count


def columns(count: int, limit: float | None = None) -> list[Column]:
    return [Column(str(n), float(n), limit, f"<{n}>", "store") for n in range(count)]


@pytest.mark.parametrize("count", [0, 1, 8, 200])
def test_every_partition_has_a_column(count: int) -> None:
    root = ElementTree.fromstring(columns_svg("t", columns(count), str))
    assert [one.get("data-id") for one in root.iter(f"{NS}g")] == [str(n) for n in range(count)]


def test_a_limit_is_drawn_once_it_is_near() -> None:
    assert "limit-line" in columns_svg("t", columns(5, 10.0), str, "at 10")
    far = columns_svg("t", columns(5, 10_000.0), str, "at 10,000")
    assert "limit-line" not in far
    assert "at 10,000" not in far


def test_the_highest_column_reaches_its_place() -> None:
    root = ElementTree.fromstring(columns_svg("t", columns(6), str))  # the axis ends at 5
    paths = [one.get("d", "") for one in root.iter(f"{NS}path") if one.get("class") == "store"]
    heights = [BOTTOM - float(one.split()[1].split("h")[0]) for one in paths]
    assert heights[-1] == pytest.approx(BOTTOM - TOP, abs=0.1)
    assert heights[0] == 0


def test_quiet_partitions_cost_one_stroke_each() -> None:
    rows = [(str(n), [0.0] * 60) for n in range(200)]
    quiet = heatmap_svg("t", rows, {str(n): 100.0 for n in range(200)}, 300)
    assert quiet.count("M") == 200
    hot = heatmap_svg("t", [("0", [0.0, 100.0])], {"0": 100.0}, 300)
    assert 'class="s10"' in hot
    assert "5 min ago" in hot
    assert 'class="s1"' in heatmap_svg("t", [("0", [5.0])], {"0": None}, 60)  # unlimited, but used


def test_traffic_stacks_what_was_refused() -> None:
    drawn = traffic_svg([(5, 5), (0, 0), (10, 0)])
    ElementTree.fromstring(drawn)
    assert 'class="refused"' in drawn
    ElementTree.fromstring(traffic_svg([]))


def test_tables_have_every_partition_and_escape_keys() -> None:
    made = ring(arcs(3))
    table = ElementTree.fromstring(partitions_html(made))
    assert [row.get("data-id") for row in table.iter("tr") if row.get("data-id")] == ["0", "1", "2"]
    assert "<th>node</th>" not in partitions_html(made)
    placed = replace(made, arcs=tuple(replace(one, node=f"db-{one.id}:5432") for one in made.arcs))
    table = ElementTree.fromstring(partitions_html(placed))
    nodes = [one.text for one in table.iter("td") if one.get("data-name") == "node"]
    assert nodes == ["db-0:5432", "db-1:5432", "db-2:5432"]
    evil = HotKey('<img src=x onerror="1">', 0.1, 1.2, 30 * 10**9, "1")
    keys = ElementTree.fromstring(keys_html(replace(made, keys=(evil,))))
    assert not list(keys.iter("img"))
    assert max(float(one.get("style", "width:0%")[6:-1]) for one in keys.iter("div")) <= 100
