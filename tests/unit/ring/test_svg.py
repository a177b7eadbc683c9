"""The picture. Without these tests it could hide a partition, show markup that a user chose, or
break with one partition, with two hundred, or with none of their items."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from tests.support.rings import arcs, ring

from armillary.ring.model import HotKey, Move, Piece, Ring, ancestors
from armillary.ring.style import PAINT, STEPS, THEMES, Theme, css, heat_colour, heat_step
from armillary.ring.svg import describe, ring_svg, storage_scale

NS = "{http://www.w3.org/2000/svg}"


def parsed(one: Ring, theme: Theme = "auto") -> ElementTree.Element:
    return ElementTree.fromstring(ring_svg(one, theme))


def groups(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [one for one in root.iter(f"{NS}g") if one.get("class") == kind]


@pytest.mark.parametrize("count", [1, 2, 7, 200, 1000])
@pytest.mark.parametrize("theme", THEMES)
def test_every_partition_is_drawn_with_its_numbers(count: int, theme: Theme) -> None:
    made = ring(arcs(count))
    drawn = groups(parsed(made, theme), "partition")
    assert [(g.get("data-id"), g.get("data-bytes"), g.get("data-normalized")) for g in drawn] == [
        (one.id, str(one.bytes), str(one.normalised)) for one in made.arcs
    ]


def test_it_speaks_to_those_who_do_not_see_it() -> None:
    root = parsed(ring(arcs(3)))
    assert root.get("role") == "img"
    title, desc = root.find(f"{NS}title"), root.find(f"{NS}desc")
    assert title is not None
    assert desc is not None
    assert root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
    assert title.text == "Partitions of shop/orders"
    assert "3 physical partitions" in (desc.text or "")


def test_names_and_keys_are_text_and_never_markup() -> None:
    evil = '</text><script>alert(1)</script>"\'&<b x="'
    made = replace(
        ring(arcs(2)),
        database=evil,
        container=evil + "\x00\x1b" + "n" * 300,
        partition_key=(evil,),
        keys=(HotKey(evil, 0.1, 0.5, 10, "0"),),
    )
    root = parsed(made)
    assert not [one for one in root.iter() if one.tag not in ALLOWED]
    assert all(not name.startswith("on") for one in root.iter() for name in one.attrib)


ALLOWED = {
    NS + name for name in ("svg", "title", "desc", "style", "rect", "circle", "path", "text", "g")
}


def test_an_empty_container_has_a_picture() -> None:
    made = ring(tuple(replace(one, bytes=0, items=0, normalised=0, used_ru=0) for one in arcs(1)))
    assert storage_scale(made) == (0, False)
    assert made.skew is None
    assert "No request units were used" in describe(made)
    assert "nothing yet" in ring_svg(made)


def test_bars_are_against_the_limit_once_it_is_near() -> None:
    made = ring(arcs(4))
    fullest = max(one.bytes for one in made.arcs)
    assert storage_scale(replace(made, partition_bytes=fullest * 2)) == (fullest * 2, True)
    assert storage_scale(replace(made, partition_bytes=fullest * 1000)) == (fullest, False)


def test_a_running_split_shows_what_is_being_made() -> None:
    move = Move("split", ("1",), (Piece("4", 0.25, 0.3), Piece("5", 0.3, 0.5)))
    made = replace(ring(arcs(4)), moves=(move,))
    (group,) = groups(parsed(made), "moving")
    assert group.get("data-parents") == "1"
    assert len([one for one in group if one.get("class") == "move"]) == 2
    assert "A split of 1 is under way." in describe(made)


def test_earlier_ranges_lie_over_their_heirs_in_generations() -> None:
    one, two, three = (
        replace(one, parents=parents)
        for one, parents in zip(arcs(3), [("0", "1"), ("0", "1"), ("0",)], strict=True)
    )
    rows = ancestors((one, two, three), 5)
    assert [[piece.id for piece in row] for row in rows] == [["1"], ["0"]]
    assert (rows[0][0].start, rows[0][0].end) == (0, two.end)
    assert (rows[1][0].start, rows[1][0].end) == (0, 1)
    assert ancestors((one, two, three), 1) == rows[:1]


def test_heat_has_a_step_for_little_and_one_for_all() -> None:
    assert [heat_step(one) for one in (0, 0.01, 55, 99.9, 100, 250)] == [0, 1, 5, 9, 10, 10]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_heat_is_told_by_lightness_too(theme: str) -> None:
    """For readers who do not see the colours, and for prints."""
    steps = [lightness(heat_colour(step, theme)) for step in range(STEPS + 1)]
    ordered = sorted(steps, reverse=theme == "light")
    assert steps == ordered
    assert abs(steps[-1] - steps[0]) > 0.3


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_on_its_ground(theme: str) -> None:
    paper = PAINT[theme]["paper"]
    for name, least in (("ink", 7.0), ("dim", 4.5), ("refused", 3.0), ("store", 3.0)):
        assert contrast(PAINT[theme][name], paper) >= least, name


def test_only_the_automatic_theme_asks_the_viewer() -> None:
    assert "prefers-color-scheme" in css("auto")
    assert "prefers-color-scheme" not in css("dark") + css("light")


def channel(value: int) -> float:
    part = value / 255
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    red, green, blue = (channel(int(colour[at : at + 2], 16)) for at in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def lightness(colour: str) -> float:
    return float(luminance(colour) ** (1 / 3))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
