"""Queries that are made to take long, alongside a client of point reads and writes: who is held up?

    python -m bench.long_queries            some 40 seconds; `--clients N`, `--deadline`

Prints: reads and writes of another container while nothing else goes on, while N clients send short
queries one after the other, while N clients have sent a long query and left, and while they stay;
how long the server works for clients that left; what the two queries are answered, after how long,
and the memory above idle; and how long the server takes to end in the middle of it. Each part has
a container of its own, because such queries are charged and the next ones then get 429.

The client that reads and writes is a process of its own, so that it does not wait for this one;
memory is only looked at in parts without it, because the kernel holds up the process it looks at.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import multiprocessing.connection
import selectors
import socket
import tempfile
import threading
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

from tests.support.nosql import signature
from tests.support.server_process import ServerProcess, children_of
from tests.support.signed_http import SignedClient

from armillary.api.core.settings import EMULATOR_KEY

LONG = (
    "SELECT VALUE COUNT(1) FROM c JOIN x IN (SELECT VALUE @p) WHERE ARRAY_CONTAINS(@p, x + 1000000)"
)
LARGE = (
    "SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE CONCAT(@s, ToString(x)) "
    "FROM x IN (SELECT VALUE @p))) FROM c"
)
QUERY_HEADERS = {
    "content-type": "application/query+json",
    "x-ms-documentdb-isquery": "true",
    "x-ms-documentdb-partitionkey": '["a"]',
}


def query_body(text: str, parameters: dict[str, Any]) -> bytes:
    named = [{"name": name, "value": value} for name, value in parameters.items()]
    return json.dumps({"query": text, "parameters": named}).encode()


LONG_RAW = query_body(LONG, {"@p": list(range(30_000))})
LARGE_RAW = query_body(LARGE, {"@s": "s" * 1_200_000, "@p": list(range(1_200))})
BESIDE_VICTIM = 0.4  # of a core: the victim alone takes a quarter
SHORT_RAW = query_body("SELECT * FROM c WHERE c.n = @n", {"@n": 1})


def query_request(container: str, raw: bytes) -> bytes:
    target = f"/dbs/d/colls/{container}/docs"
    date = formatdate(usegmt=True)
    headers = QUERY_HEADERS | {
        "host": "localhost",
        "x-ms-date": date,
        "x-ms-version": "2020-07-15",
        "authorization": signature(EMULATOR_KEY, "POST", "docs", f"dbs/d/colls/{container}", date),
        "content-length": str(len(raw)),
    }
    head = f"POST {target} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items())
    return head.encode() + b"\r\n" + raw


def send_query(port: int, container: str, raw: bytes) -> socket.socket:
    """The request is on its way; the answer is for whoever reads the socket."""
    client = socket.create_connection(("127.0.0.1", port), 60)
    client.sendall(query_request(container, raw))
    return client


def ask_shortly(port: int, clients: int, until: float) -> int:
    """Short queries, each sent when the last one of its client was answered. How many."""
    done = 0
    with selectors.DefaultSelector() as selector:
        for _ in range(clients):
            selector.register(send_query(port, "short", SHORT_RAW), selectors.EVENT_READ)
        while time.monotonic() < until:
            for key, _ in selector.select(0.1):
                client = key.fileobj
                assert isinstance(client, socket.socket)
                answer = client.recv(65_536)
                assert answer.startswith(b"HTTP/1.1 200"), answer
                client.sendall(query_request("short", SHORT_RAW))
                done += 1
        for key in selector.get_map().values():
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
    return done


def read_and_write(port: int, pipe: multiprocessing.connection.Connection) -> None:
    """Point reads and upserts of another container, one after the other, until told to stop."""
    client = SignedClient(port)
    key = {"x-ms-documentdb-partitionkey": '["a"]'}
    item = {"id": "1", "pk": "a", "n": 1}
    times: tuple[list[float], list[float]] = ([], [])
    pipe.send("ready")
    while not pipe.poll():
        began = time.perf_counter()
        reply = client.ask("GET", "/dbs/d/colls/victim/docs/1", headers=key)
        assert reply.status == 200, reply
        times[0].append(time.perf_counter() - began)
        time.sleep(0.002)
        began = time.perf_counter()
        upsert = key | {"x-ms-documentdb-is-upsert": "true"}
        reply = client.ask("POST", "/dbs/d/colls/victim/docs", item, upsert)
        assert reply.status == 200, reply
        times[1].append(time.perf_counter() - began)
        time.sleep(0.002)
    pipe.send(times)


class Victim:
    """A process of its own that reads and writes."""

    def __init__(self, port: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=read_and_write, args=(port, theirs), daemon=True)
        self._process.start()
        assert self._pipe.recv() == "ready"

    def stop(self) -> str:
        self._pipe.send("stop")
        reads, writes = self._pipe.recv()
        self._process.join()
        return f"{spread('reads', reads)}\n{'':23}{spread('writes', writes)}"


def spread(what: str, times: list[float]) -> str:
    found = sorted(times)
    p50, p99 = (found[int(len(found) * share)] * 1000 for share in (0.5, 0.99))
    most = found[-1] * 1000
    return f"{len(found):5} {what:6} p50 {p50:6.1f} ms, p99 {p99:6.1f} ms, max {most:6.1f} ms"


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def own_mb(pids: list[int]) -> float:
    """Memory of all processes, without pages of files; what they share counts once."""
    total_kb = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total_kb += sum(int(line.split()[1]) for line in lines if line.startswith("Pss_Anon:"))
    return total_kb / 1024


class Peak:
    """The most memory of all processes of a server, looked at every 20 ms."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids
        self.most = own_mb(pids)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            self.most = max(self.most, own_mb(self._pids))

    def stop(self) -> float:
        self._stop.set()
        self._thread.join()
        return self.most


def until_idle(pid: int, busy: float = 0.1, seconds: float = 60.0) -> float:
    """How long the process goes on working: until it uses less than that share of a core."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        before = cpu_s(pid)
        time.sleep(0.2)
        if cpu_s(pid) - before <= 0.2 * busy:
            return time.monotonic() - began - 0.2
    return seconds


def status_of(client: socket.socket, seconds: float = 60.0) -> tuple[str, float]:
    began = time.monotonic()
    client.settimeout(seconds)
    head = client.recv(65_536).decode("latin-1")
    charge = [line for line in head.split("\r\n") if line.startswith("x-ms-request-charge")]
    return " ".join([head.split("\r\n")[0], *charge]), time.monotonic() - began


def fill(port: int) -> None:
    client = SignedClient(port)
    assert client.ask("POST", "/dbs", {"id": "d"}).status == 201
    for name in ("left", "stay", "memory", "large", "long", "end", "short", "victim"):
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        body = {"id": name, "partitionKey": key}
        many = {"x-ms-offer-throughput": "1000000"} if name in ("short", "victim") else {}
        assert client.ask("POST", "/dbs/d/colls", body, many).status == 201
        for number in range(3):
            item = {"id": str(number), "pk": "a", "n": number}
            headers = {"x-ms-documentdb-partitionkey": '["a"]'}
            assert client.ask("POST", f"/dbs/d/colls/{name}/docs", item, headers).status == 201


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=70)
    parser.add_argument("--deadline", action="store_true", help="wait for the deadline as well")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(Path(folder), real=True)
        try:
            server.wait_until_ready()
            run(server, asked.clients, asked.deadline)
        finally:
            server.close()


def run(server: ServerProcess, clients: int, deadline: bool) -> None:
    port, pid = server.port, server.process.pid
    fill(port)
    pids = [pid, *children_of(pid)]
    idle_mb = own_mb(pids)
    victim = Victim(port)
    time.sleep(3)
    print(f"nothing else           {victim.stop()}")

    victim = Victim(port)
    done = ask_shortly(port, clients, time.monotonic() + 5)
    print(f"{clients} short one by one   {victim.stop()}, {done / 5:.0f} queries/s")

    if deadline:
        peak = Peak(pids)
        client = send_query(port, "long", LONG_RAW)
        status, seconds = status_of(client)
        above_mb = peak.stop() - idle_mb
        print(
            f"long                   {status} after {seconds:.1f} s, {above_mb:.0f} MB above idle"
        )
        client.close()

    peak = Peak(pids)
    client = send_query(port, "large", LARGE_RAW)
    status, seconds = status_of(client)
    above_mb = peak.stop() - idle_mb
    print(f"large                  {status} after {seconds:.1f} s, {above_mb:.0f} MB above idle")
    client.close()

    victim = Victim(port)
    leave(port, clients)
    worked_s = until_idle(pid, BESIDE_VICTIM)
    time.sleep(1)
    print(f"{clients} that left          {victim.stop()}")
    print(f"                       the server worked for them {worked_s:.1f} s")

    victim = Victim(port)
    staying = [send_query(port, "stay", LONG_RAW) for _ in range(clients)]
    time.sleep(5)
    print(f"{clients} that stay          {victim.stop()}")
    for client in staying:
        client.close()
    print(f"                       then worked {until_idle(pid):.1f} s more")

    peak = Peak(pids)
    staying = [send_query(port, "memory", LONG_RAW) for _ in range(clients)]
    time.sleep(2)
    print(f"{clients}, their memory      {peak.stop() - idle_mb:.0f} MB above idle")
    for client in staying:
        client.close()

    staying = [send_query(port, "end", LONG_RAW) for _ in range(clients)]
    time.sleep(1)
    began = time.monotonic()
    server.terminate()
    code, _, _ = server.end()
    print(f"SIGTERM amid {clients}        ended with {code} after {time.monotonic() - began:.1f} s")
    for client in staying:
        client.close()


def leave(port: int, clients: int) -> None:
    for client in [send_query(port, "left", LONG_RAW) for _ in range(clients)]:
        client.close()


if __name__ == "__main__":
    main()
