"""Which vertex property should be the partition key of a graph. The graph here is made so that the
answer is known: people know people of their city, so cities keep neighbours together; a country
holds too much, an account number tears everything apart."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

import armillary
from armillary.advisor.graphs.advice import GraphAdvice, advise
from armillary.advisor.graphs.elements import GraphData, of_documents, of_files
from armillary.api.gremlin.graph.files import GraphFile
from armillary.cli import app
from armillary.errors import BadInput

CITIES = 60
PEOPLE = 1_200


def people() -> list[dict[str, Any]]:
    return [
        {
            "~id": f"p{at}",
            "~label": "person",
            "city": f"city{at % CITIES}",
            "country": "NO" if at % CITIES < 45 else "SE",
            "account": f"{at:08x}",
            **({"team": at % 30} if at % 3 else {}),
        }
        for at in range(PEOPLE)
    ]


def friends() -> list[dict[str, Any]]:
    """Nine of ten in the same city."""
    chance = random.Random(5)
    rows = []
    for at in range(PEOPLE * 3):
        one = chance.randrange(PEOPLE)
        other = chance.randrange(PEOPLE)
        if at % 10:
            other = (one + CITIES * chance.randrange(1, PEOPLE // CITIES)) % PEOPLE
        rows.append({"~id": f"e{at}", "~label": "knows", "~from": f"p{one}", "~to": f"p{other}"})
    return rows


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    names = dict.fromkeys(name for row in rows for name in row)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(names))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("graph")
    return write(folder / "knows.csv", friends()), write(folder / "people.csv", people())


@pytest.fixture(scope="module")
def advice(files: tuple[Path, Path]) -> GraphAdvice:
    return advise(of_files(files))


def test_the_key_that_keeps_neighbours_together_wins(advice: GraphAdvice) -> None:
    first = advice.keys[0]
    assert (first.key, first.verdict) == ("city", "recommended")
    assert first.crossing < 0.15
    assert first.crossing_keys == pytest.approx(0.1, abs=0.02)
    assert first.hop < 2
    account = next(one for one in advice.keys if one.key == "account")
    assert account.verdict == "acceptable"
    assert account.crossing == pytest.approx(0.9, abs=0.02)  # ten partitions, by chance
    assert account.hop > first.hop


def test_keys_that_can_not_carry_a_graph_say_why(advice: GraphAdvice) -> None:
    reasons = {one.key: one.reasons for one in advice.keys if one.verdict == "rejected"}
    assert reasons["country"] == (
        "2 values fill at most 2 physical partitions",
        "one value holds 74% of the graph, and one value is never divided",
    )
    assert "33.3% of the vertices lack it; every vertex needs its key" in reasons["team"]


def test_documents_of_a_container_say_the_same(
    files: tuple[Path, Path], advice: GraphAdvice
) -> None:
    reader = GraphFile("account", files[1])
    documents = [
        one for file in files for one in reader.documents(file) if not isinstance(one, BadInput)
    ]
    found = advise(of_documents(documents, "account"), current="account")
    assert found.edges == advice.edges == len(friends())
    assert [(one.key, one.verdict, one.crossing) for one in found.keys] == [
        (one.key, one.verdict, one.crossing) for one in advice.keys
    ]


def test_graphson_lines(tmp_path: Path) -> None:
    lines = [
        {
            "id": str(at),
            "label": "p",
            "properties": {
                "pk": [{"value": f"k{at // 2}"}],
                "nick": [{"value": "a"}, {"value": "b"}],
            },
            "outE": {"knows": [{"id": f"e{at}", "inV": str(at ^ 1)}]},
        }
        for at in range(400)
    ]
    file = tmp_path / "graph.json"
    file.write_bytes(b"\n".join(map(orjson.dumps, lines)) + b"\nbroken\n")
    found = advise(of_files([file]))
    (key,) = found.keys
    assert (key.key, key.verdict, key.crossing, key.hop) == ("pk", "recommended", 0.0, 1.0)
    assert found.unfit == {"nick": "vertices have several values of it"}
    assert any("1 rows could not be read" in note for note in found.notes)


def test_a_graph_without_any_property_is_reported() -> None:
    data = GraphData()
    data.add_vertex("a", {}, 10)
    with pytest.raises(BadInput, match="No property of the vertices"):
        advise(data.finish())


def test_the_command_on_files_and_on_a_data_folder(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    edges, vertices = files
    told = CliRunner().invoke(app, ["advise", "--graph", str(vertices), str(edges), "--json"])
    assert told.exit_code == 0, told.output
    assert orjson.loads(told.output)["recommended"] == "city"
    with armillary.open(tmp_path / "data") as account:
        container = account.create_database("d").create_container("g", "/country")
        reader = GraphFile("country", vertices)
        for file in (vertices, edges):
            container.bulk([("create", (one,)) for one in reader.documents(file)])
    shown = CliRunner().invoke(app, ["advise", "--graph", str(tmp_path / "data")])
    assert shown.exit_code == 0, shown.output
    assert "/city: " in shown.output
    assert "The key is 'country' now" in " ".join(shown.output.split())
