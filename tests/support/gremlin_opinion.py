"""TinkerGraph 3.4 from Maven Central, asked through a pipe: what Gremlin itself says."""

from __future__ import annotations

import base64
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.gremlin_strategies import GraphMade

FOLDER = Path(__file__).resolve().parents[1] / "conformance" / "gremlin" / "java"
LACKS = [one for one in ("java", "javac", "mvn") if shutil.which(one) is None]


class Refused(Exception):
    """TinkerPop raised an error."""


def build(target: Path) -> str:
    """Compile; the class path."""
    listed = target / "classpath.txt"
    subprocess.run(
        ["mvn", "-B", "-q", "compile", "dependency:build-classpath", f"-Dfolder={target}",
         f"-Dmdep.outputFile={listed}"],
        cwd=FOLDER, check=True, capture_output=True, timeout=850,
    )  # fmt: skip
    return f"{target / 'classes'}:{listed.read_text()}"


def scenarios_jar(target: Path) -> Path:
    """The feature files of TinkerPop 3.7."""
    subprocess.run(
        ["mvn", "-B", "-q", "dependency:copy", f"-DoutputDirectory={target}", f"-Dfolder={target}",
         "-Dartifact=org.apache.tinkerpop:gremlin-test:3.7.3:jar"],
        cwd=FOLDER, check=True, capture_output=True, timeout=850,
    )  # fmt: skip
    return target / "gremlin-test-3.7.3.jar"


class Opinion:
    def __init__(self, classpath: str | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory()
        path = classpath or build(Path(self._folder.name))
        self._process = subprocess.Popen(
            ["java", "-Xmx512m", "-cp", path, "Opinion"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Opinion:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()
        self._folder.cleanup()

    def _ask(self, command: str, *fields: str) -> list[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join((command, *fields)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline().rstrip("\n")
        if line.startswith("-"):
            raise Refused(base64.b64decode(line[1:]).decode())
        assert line.startswith("+"), line
        return line[1:].split("\t") if line[1:] else []

    def fill(self, made: GraphMade) -> None:
        self._ask("N")
        for one in made.vertices:
            self._ask("V", *_fields(one.id, one.label), *_values(one.properties))
        for edge in made.edges:
            fields = _fields(edge.id, edge.label, edge.source, edge.target)
            self._ask("E", *fields, *_values(edge.properties))

    def results(self, script: str) -> list[str]:
        found = self._ask("R", *_fields(script))
        return [base64.b64decode(one).decode() for one in found]


def _fields(*texts: str) -> list[str]:
    return [base64.b64encode(one.encode()).decode() for one in texts]


def _values(properties: tuple[tuple[str, Any], ...]) -> list[str]:
    found: list[str] = []
    for key, value in properties:
        kind = {str: "s", int: "i", float: "d", bool: "b"}[type(value)]
        found += (*_fields(key), kind, *_fields(str(value)))
    return found
