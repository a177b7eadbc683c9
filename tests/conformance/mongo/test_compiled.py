"""The MongoDB drivers for Go and Java against `armillary serve`: each of their tests is one here.
Go over TLS with compression, Java without."""

import tempfile
from pathlib import Path

import pytest
from tests.conformance.mongo.test_server import plain, started
from tests.support.compiled import go_names, java_names, only_in_conformance, run_go, run_java

GO = Path(__file__).parent / "go"
JAVA = Path(__file__).parent / "java"


@pytest.fixture(scope="module")
def go() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as made, started(Path(made, "data")) as (_, uri):
        return run_go(GO, {"MONGO_URI": uri})


@pytest.fixture(scope="module")
def java() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as made, started(Path(made, "data")) as (_, uri):
        return run_java(JAVA, Path(made, "target"), {"MONGO_URI": plain(uri)})


class TestGo:
    pytestmark = only_in_conformance("go")

    @pytest.mark.parametrize("name", go_names(GO))
    def test_go(self, go: dict[str, str], name: str) -> None:
        assert go[name] == ""


class TestJava:
    pytestmark = only_in_conformance("java", "javac", "mvn")

    @pytest.mark.parametrize("name", java_names(JAVA))
    def test_java(self, java: dict[str, str], name: str) -> None:
        assert java[name] == ""
