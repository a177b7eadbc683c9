"""The graph page in a real browser: a traversal is run, its vertices are drawn in the colours of
their physical partitions, edges that cross are seen, and the partition page knows the graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.support.portal import Portal

from armillary.testing.process import Server, start_server

PEOPLE = 24


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_server(options=("--partition-ru", "1000")) as server:
        yield server


@pytest.fixture
def graph(portal: Portal) -> None:
    """People who know the next one of their city; every third also somebody elsewhere."""
    portal.make_container("shop", "people", "/city", throughput=3000)
    cities = [f"city{at % 8}" for at in range(PEOPLE)]
    for at, city in enumerate(cities):
        run(portal, "g.addV('person').property('id', i).property('city', c)", i=f"p{at}", c=city)
    for at, city in enumerate(cities):
        for other in (at + 8, *([at + 1] if at % 3 == 0 else [])):
            to = other % PEOPLE
            text = "g.V([c, i]).addE('knows').to(g.V([d, j]))"
            run(portal, text, c=city, i=f"p{at}", d=cities[to], j=f"p{to}")


def run(portal: Portal, text: str, **bindings: str) -> Any:
    body = {"gremlin": text, "bindings": bindings}
    return portal.control("dbs/shop/colls/people/gremlin", "POST", body)


def test_a_traversal_is_drawn_by_partition(portal: Portal, graph: None) -> None:
    told = run(portal, "g.V()")
    places = {one["id"]: one["partition"] for one in told["vertices"]}
    assert len(places) == PEOPLE
    partitions = sorted(set(places.values()))
    assert len(partitions) > 1
    crossing = [
        one for one in told["edges"] if places[one["from"]["id"]] != places[one["to"]["id"]]
    ]
    assert 0 < len(crossing) < len(told["edges"])

    page = portal.open("/graph?db=shop&c=people&q=g.V()")
    page.get_by_role("button", name="Run").click()
    picture = portal.see("graph-picture")
    expect(picture.locator("circle")).to_have_count(PEOPLE)
    expect(picture.locator("path[stroke-dasharray]")).to_have_count(len(crossing))
    expect(portal.see("graph-crossing")).to_contain_text(
        f"{PEOPLE} vertices, {len(told['edges'])} edges; {len(crossing)} of {len(told['edges'])} "
        "cross physical partitions"
    )
    dots = picture.locator("circle")
    colours = {dots.nth(at).get_attribute("fill") for at in range(PEOPLE)}
    assert len(colours) == len(partitions)
    expect(portal.see("graph-cost")).to_contain_text(f"{PEOPLE} results")

    # Values have no picture; a wrong script says where it is wrong.
    page.get_by_role("button", name="Labels").click()
    expect(portal.see("graph-cost")).to_contain_text("1 results")
    expect(portal.see("graph-picture")).to_have_count(0)
    expect(page.get_by_text('"person": 24')).to_be_visible()
    page = portal.open("/graph?db=shop&c=people&q=g.V().fail()")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("Unable to find any method 'fail' @ line 1, column 7.")).to_be_visible()


def test_the_partition_page_shows_the_elements_of_a_graph(portal: Portal, graph: None) -> None:
    lines = portal.control("dbs/shop/colls/people/partitions")["partitions"]
    portal.open("/partitions?db=shop&c=people")
    expect(portal.see("ring").locator("g.partition")).to_have_count(len(lines))
    expect(portal.see("items")).to_have_text(str(PEOPLE + PEOPLE + PEOPLE // 3))
    expect(portal.see("keys")).to_contain_text("city3")
