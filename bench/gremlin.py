"""The Gremlin API beside Gremlin Server with TinkerGraph in memory, where Java and Maven are.

    point lookup     g.V([key, id]) here, g.V(id) there
    two hops         the neighbours of the neighbours of one vertex, at most 100 of them; first of
                     vertices that are asked for once, then of some hundred again and again (a
                     server keeps what it has read)
    filtered count   vertices of one age
    addV, addE       one element per request; durable here, in memory there
    memory           private memory of the server while it answers with every vertex, and while it
                     goes two hops from many of them; pages of the data file are not counted

gremlinpython asks both, one request after the other, in rounds that take turns, after some seconds
to warm up (a Java server is slow until its code is compiled). `--vertices` and `--edges` set the
size (20,000 and 200,000). `--data FOLDER` keeps the loaded graph there, for another run.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.report import Report
from gremlin_python.driver.client import Client
from gremlin_python.driver.serializer import GraphSONSerializersV2d0

import armillary
from armillary.api.core.settings import EMULATOR_KEY

FOLDER = Path(__file__).resolve().parent / "gremlin_server"
KEYS = 1000
ROUNDS = 5
PER_ROUND = 60
WARM_REQUESTS = 400
WARM_SECONDS = 4.0


class Made:
    """The graph, as plain rows."""

    def __init__(self, vertices: int, edges: int) -> None:
        chance = random.Random(7)
        self.vertices = [
            (f"v{n}", f"k{n % KEYS}", f"name{n}", chance.randrange(1, 100)) for n in range(vertices)
        ]
        self.edges = [
            (f"e{n}", f"v{chance.randrange(vertices)}", f"v{chance.randrange(vertices)}")
            for n in range(edges)
        ]

    def documents(self) -> Iterator[dict[str, Any]]:
        keys = {}
        for id, key, name, age in self.vertices:
            keys[id] = key
            yield {
                "id": id, "label": "person", "pk": key,
                "name": [{"id": f"{id}n", "_value": name}],
                "age": [{"id": f"{id}a", "_value": age}],
            }  # fmt: skip
        for id, source, target in self.edges:
            yield {
                "id": id, "label": "knows", "_isEdge": True, "_vertexId": source,
                "_vertexLabel": "person", "_sink": target, "_sinkLabel": "person",
                "_sinkPartition": keys[target], "pk": keys[source],
            }  # fmt: skip


def connect(url: str) -> Client:
    return Client(
        url, "g", username="/dbs/d/colls/g", password=EMULATOR_KEY,
        message_serializer=GraphSONSerializersV2d0(), pool_size=1,
    )  # fmt: skip


def load(made: Made, folder: Path, report: Report) -> None:
    began = time.perf_counter()
    with armillary.open(folder) as account:
        container = account.create_database("d").create_container("g", "/pk")
        group: list[Any] = []
        for document in made.documents():
            group.append(("create", (document,)))
            if len(group) == 1000:
                container.bulk(group)
                group = []
        container.bulk(group)
    elements = len(made.vertices) + len(made.edges)
    report.line("load, in process", elements / (time.perf_counter() - began), unit="el/s")


@contextmanager
def ours(made: Made, folder: Path, report: Report) -> Iterator[tuple[Client, int]]:
    """A client, and the process that serves it."""
    if not folder.exists():
        load(made, folder, report)
    command = [sys.executable, "-m", "armillary", "serve", "--data", str(folder), "--port", "0"]
    environ = {"ARMILLARY_THROUGHPUT_ENFORCE": "off", "ARMILLARY_GREMLIN_SECONDS": "600"}

    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environ}
    )
    port = 0
    assert process.stdout is not None
    for line in process.stdout:
        if "ws://localhost:" in line:
            port = int(line.split("ws://localhost:")[1].split("/")[0])
        if line.startswith("ready"):
            break
    client = connect(f"ws://localhost:{port}/gremlin")
    try:
        yield client, process.pid
        report.line("memory of Armillary", memory_mb(process.pid), unit="MB")
    finally:
        client.close()
        process.terminate()
        process.wait(30)
        process.stdout.close()


def memory_mb(pid: int, kind: str = "VmRSS") -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split(f"{kind}:")[1].split()[0]) / 1024


LARGE = {
    "every vertex": "g.V()",
    "two hops from 2,000": "g.V().limit(2000).out().out().count()",
}


def memory_of_large(report: Report, client: Client, pid: int) -> None:
    for name, text in LARGE.items():
        before = memory_mb(pid, "RssAnon")
        most, ended = [before], threading.Event()

        def watch(most: list[float] = most, ended: threading.Event = ended) -> None:
            while not ended.wait(0.02):
                most[0] = max(most[0], memory_mb(pid, "RssAnon"))

        watching = threading.Thread(target=watch)
        watching.start()
        began = time.perf_counter()
        try:
            results = sum(len(part) for part in client.submit(text))
        finally:
            ended.set()
            watching.join()
        facts = {"before_mb": round(before, 1), "results": results}
        seconds = round(time.perf_counter() - began, 1)
        report.line(f"memory, {name}", most[0], unit="MB", seconds=seconds, **facts)


@contextmanager
def theirs(made: Made, folder: Path, report: Report) -> Iterator[Client]:
    folder.mkdir()
    (folder / "vertices.tsv").write_text(
        "".join("\t".join(map(str, row)) + "\n" for row in made.vertices)
    )
    (folder / "edges.tsv").write_text("".join("\t".join(row) + "\n" for row in made.edges))
    (folder / "graph.properties").write_text(
        "gremlin.graph=org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph\n"
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for name in ("server.yaml", "load.groovy"):
        text = (FOLDER / name).read_text().replace("FOLDER", str(folder)).replace("PORT", str(port))
        (folder / name).write_text(text)
    listed = folder / "classpath.txt"
    subprocess.run(
        ["mvn", "-B", "-q", "dependency:build-classpath", f"-Dmdep.outputFile={listed}"],
        cwd=FOLDER, check=True, capture_output=True,
    )  # fmt: skip
    process = subprocess.Popen(
        ["java", "-Xmx3g", "-cp", listed.read_text(),
         "org.apache.tinkerpop.gremlin.server.GremlinServer", str(folder / "server.yaml")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for(process, port)
        client = connect(f"ws://127.0.0.1:{port}/gremlin")
        try:
            assert client.submit("g.V().count()").all().result(60) == [len(made.vertices)]
            assert client.submit("g.E().count()").all().result(60) == [len(made.edges)]
            yield client
            report.line("memory of Gremlin Server", memory_mb(process.pid), unit="MB")
        finally:
            client.close()
    finally:
        process.terminate()
        process.wait(30)


def wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    """Until it listens, which it does once the graph is loaded. By a socket of our own: a driver
    that was refused once keeps its pool empty for ever."""
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError("Gremlin Server did not start.")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise RuntimeError("Gremlin Server did not listen within five minutes.")


Ask = Callable[[Client, bool, int], Any]


def questions(made: Made) -> dict[str, Ask]:
    chance = random.Random(11)
    chosen = [made.vertices[chance.randrange(len(made.vertices))] for _ in range(1000)]

    def at(n: int) -> dict[str, str]:
        id, key, *_ = chosen[n % len(chosen)]
        return {"i": id, "k": key}

    def submit(client: Client, text: str, bindings: dict[str, Any]) -> Any:
        return client.submit(text, bindings).all().result(60)

    def vertex(mine: bool) -> str:
        return "g.V([k, i])" if mine else "g.V(i)"

    serial = iter(range(10**9))
    shuffled = chance.sample(made.vertices, len(made.vertices))
    others = {mine: iter(shuffled) for mine in (True, False)}

    def once(mine: bool) -> dict[str, str]:
        id, key, *_ = next(others[mine])
        return {"i": id, "k": key}

    two_hops = ".out('knows').out('knows').limit(100).id()"
    return {
        "point lookup": lambda c, mine, n: submit(c, vertex(mine), at(n)),
        "two hops, asked once": lambda c, mine, n: submit(c, vertex(mine) + two_hops, once(mine)),
        "two hops": lambda c, mine, n: submit(c, vertex(mine) + two_hops, at(n)),
        "filtered count": lambda c, mine, n: submit(
            c, "g.V().has('age', a).count()", {"a": n % 99 + 1}
        ),
        "addV": lambda c, mine, n: submit(
            c,
            "g.addV('person').property(id, i).property('pk', k).property('name', i)",
            {"i": f"new{os.getpid()}-{next(serial)}", "k": f"k{n % KEYS}"},
        ),
        "addE": lambda c, mine, n: submit(
            c,
            vertex(mine) + ".addE('knows').to(" + ("g.V([l, j])" if mine else "__.V(j)") + ")",
            at(n) | {"j": at(n + 1)["i"], "l": at(n + 1)["k"]},
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Gremlin beside Gremlin Server")
    parser.add_argument("--vertices", type=int, default=20_000)
    parser.add_argument("--edges", type=int, default=200_000)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--data", type=Path, help="where the loaded graph stays")
    parser.add_argument("--alone", action="store_true", help="without Gremlin Server")
    chosen = parser.parse_args()
    report = Report("gremlin")
    made = Made(chosen.vertices, chosen.edges)
    beside = not chosen.alone and all(shutil.which(one) for one in ("java", "mvn"))
    with (
        TemporaryDirectory() as folder,
        ours(made, chosen.data or Path(folder, "data"), report) as (mine, pid),
    ):
        memory_of_large(report, mine, pid)
        if not beside:
            report.note("Gremlin Server is left out: it needs Java and Maven.")
            measure(report, made, mine, None)
            return
        with theirs(made, Path(folder, "server"), report) as other:
            measure(report, made, mine, other)


def measure(report: Report, made: Made, mine: Client, other: Client | None) -> None:
    for name, ask in questions(made).items():
        times: dict[bool, list[float]] = {True: [], False: []}
        sides = [(True, mine), *([] if other is None else [(False, other)])]
        for is_mine, client in sides:
            warm_until = time.perf_counter() + WARM_SECONDS
            for n in range(WARM_REQUESTS):
                ask(client, is_mine, n)
                if time.perf_counter() > warm_until:
                    break
        for turn in range(ROUNDS):
            for is_mine, client in sides:
                for n in range(PER_ROUND):
                    began = time.perf_counter()
                    ask(client, is_mine, turn * PER_ROUND + n)
                    times[is_mine].append(time.perf_counter() - began)
        middle = statistics.median(times[True])
        facts: dict[str, Any] = {"p50_us": round(middle * 1e6)}
        if times[False]:
            facts["server_us"] = round(statistics.median(times[False]) * 1e6)
            facts["ratio"] = round(statistics.median(times[False]) / middle, 2)
        report.line(name, 1 / middle, **facts)


if __name__ == "__main__":
    main()
