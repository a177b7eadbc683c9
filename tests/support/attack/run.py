"""A server with every protocol under attack, and what becomes of it.

    Siege(folder)        a server, with one of everything
      victim()           a process that reads an item of its own, alone or beside
      attack(…)          one process per protocol, each with its share of the requests
      end_amid()         SIGTERM while all of them go on

A defect is an answer of 500 (code 1 for MongoDB), a line in the log that calls itself a bug, or
anything with a traceback.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.support.attack import nosql, table
from tests.support.server_process import ROOT, ServerProcess, environment
from tests.support.signed_http import SignedClient

STILL: Final = "still at work"
SHARES: Final[Mapping[str, float]] = {
    "frames": 0.08,
    "nosql": 0.45,
    "scripts": 0.01,
    "table": 0.18,
    "mongo": 0.18,
    "gremlin": 0.10,
}
OPTIONS: Final = ("--mongo-port", "0", "--table-port", "0", "--gremlin-port", "0")
#: So that damage reaches the handlers and is not turned away for what it would cost.
ENVIRON: Final = {"ARMILLARY_THROUGHPUT_ENFORCE": "off"}
PORTS: Final = {
    "mongo": r"mongodb://\S*?@[^:/]+:(\d+)",
    "table": r"TableEndpoint=https?://[^:/]+:(\d+)",
    "gremlin": r"ws://localhost:(\d+)/gremlin",
}
SAMPLE_SECONDS: Final = 3.0
SECONDS_MAX: Final = 7_200.0
PATIENCE_SECONDS: Final = 120.0
"""With attackers that should have ended."""
SHOWN_MAX, LINE_MAX = 20, 600
STORY_LINES: Final = 40
"""Of the log, from a line that calls itself a bug."""
BUG: Final = re.compile(r"Traceback|a bug|failed\b.*\bException")


@dataclass
class Outcome:
    sent: Counter[str] = field(default_factory=Counter)
    answers: dict[str, Counter[str]] = field(default_factory=dict)
    defects: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    seconds: float = 0.0
    attackers_cpu_s: float = 0.0
    server_cpu_s: float = 0.0

    def lines(self) -> list[str]:
        total = sum(self.sent.values())
        rate = total / self.seconds if self.seconds else 0.0
        found = [
            f"{total:,} requests in {self.seconds:.0f} s ({rate:.0f}/s), "
            f"{len(self.silent)} silent; processor time a request: server "
            f"{self.server_cpu_s / total * 1e6:.0f} µs, "
            f"attackers {self.attackers_cpu_s / total * 1e6:.0f} µs"
        ]
        for name, shown in (("defect", self.defects), ("silent", self.silent)):
            found += [f"  {name}: {one[:LINE_MAX]}" for one in shown[:SHOWN_MAX]]
        for name, answers in self.answers.items():
            most = ", ".join(f"{what}: {count:,}" for what, count in answers.most_common(12))
            found.append(f"  {name:8} {self.sent[name]:9,}  {most}")
        return found


class Siege:
    def __init__(self, folder: Path, *, workers: int = 1) -> None:
        options = [*OPTIONS, "--workers", str(workers)]
        self.server = ServerProcess(folder, real=True, options=options, environ=ENVIRON)
        self.server.wait_until_ready()
        self.bugs: list[str] = []
        """Lines of the log that call themselves one."""
        self.late: list[str] = []
        """What was not waited for at the end."""
        self.story: list[str] = []
        """What the log has behind the first of them."""
        self._reading = [
            threading.Thread(target=self._read, args=(one,), daemon=True)
            for one in (self.server.process.stdout, self.server.process.stderr)
        ]
        for one in self._reading:
            one.start()
        self.ports = {"frames": self.server.port, "nosql": self.server.port}
        self.ports["scripts"] = self.server.port
        text = "\n".join(self.server.lines)
        for name, pattern in PORTS.items():
            found = re.search(pattern, text)
            assert found is not None, (name, text)
            self.ports[name] = int(found[1])
        self._fill()

    def _read(self, stream: Any) -> None:
        for line in stream:
            if BUG.search(line):
                self.bugs.append(line.rstrip())
            if STILL in line:
                self.late.append(line.rstrip())
            if self.bugs and len(self.story) < STORY_LINES:
                self.story.append(line.rstrip())

    def _fill(self) -> None:
        client = SignedClient(self.server.port)
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        for database, name in (("victim", "c"), ("g", "g"), ("s", "c")):
            assert client.ask("POST", "/dbs", {"id": database}).status == 201
            made = {"id": name, "partitionKey": key}
            assert client.ask("POST", f"/dbs/{database}/colls", made).status == 201
        assert client.create("dbs/victim/colls/c", {"id": "1", "pk": "a", "n": 1}).status == 201
        client.close()
        nosql.RemoteWorld(self.server.port).renew()
        kind = {"content-type": "application/json"}
        body = b'{"TableName":"t"}'
        port = self.ports["table"]
        with socket.create_connection(("127.0.0.1", port), 60) as one:
            one.sendall(table.signed(port, "POST", "/Tables", body, kind))
            assert b" 201 " in one.recv(65_536)[:40]

    # --- what is looked at ----------------------------------------------------------------------

    def _processes(self) -> Iterator[tuple[Path, list[str]]]:
        """Folder and state of each process of the server's session."""
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.server.process.pid:
                    yield entry, fields

    def memory_mb(self) -> float:
        """Of all processes of the server, without pages of files."""
        total = 0
        for entry, _ in self._processes():
            with suppress(OSError):
                for line in (entry / "smaps_rollup").read_text("ascii").splitlines():
                    if line.startswith("Pss_Anon:"):
                        total += int(line.split()[1])
        return total / 1024

    def cpu_s(self) -> float:
        """Of the processes that run, and of children that ended."""
        ticks = sum(sum(map(int, fields[11:15])) for _, fields in self._processes())
        return ticks / os.sysconf("SC_CLK_TCK")

    @contextmanager
    def victim(self) -> Iterator[dict[str, Any]]:
        """Its times, once it is over."""
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.attack.victim", str(self.server.port)],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        found: dict[str, Any] = {}
        try:
            yield found
        finally:
            out, _ = process.communicate(timeout=240)
            found |= json.loads(out)

    # --- attackers ------------------------------------------------------------------------------

    def begin(
        self,
        count: int,
        seed: int,
        *,
        valid: bool = False,
        rate: float | None = None,
        seconds: float = SECONDS_MAX,
    ) -> dict[str, subprocess.Popen[str]]:
        chance = Random(seed)
        begun = {}
        for name, share in SHARES.items():
            asked = {
                "protocol": name,
                "port": self.ports[name],
                "count": max(1, int(count * share)),
                "seed": chance.randrange(2**31),
                "valid": valid,
                "rate": rate and rate * share,
                "seconds": seconds,
            }
            begun[name] = subprocess.Popen(
                [sys.executable, "-m", "tests.support.attack.client", json.dumps(asked)],
                cwd=ROOT,
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        return begun

    def attack(
        self,
        count: int,
        seed: int,
        *,
        valid: bool = False,
        rate: float | None = None,
        samples: list[tuple[float, float]] | None = None,
        seconds: float = SECONDS_MAX,
    ) -> Outcome:
        """`samples` gets (seconds since the beginning, memory in MB)."""
        began, spent = time.monotonic(), self.cpu_s()
        begun = self.begin(count, seed, valid=valid, rate=rate, seconds=seconds)
        outs: dict[str, tuple[str, str]] = {}
        waiting = [
            threading.Thread(target=lambda n=n, p=p: outs.__setitem__(n, p.communicate()))
            for n, p in begun.items()
        ]
        for one in waiting:
            one.start()
        while any(one.is_alive() for one in waiting):
            if samples is not None:
                samples.append((time.monotonic() - began, self.memory_mb()))
            if time.monotonic() - began > seconds + PATIENCE_SECONDS:
                for process in begun.values():
                    process.kill()
            waiting[0].join(SAMPLE_SECONDS)
            time.sleep(0.05)
        outcome = Outcome(seconds=time.monotonic() - began, server_cpu_s=self.cpu_s() - spent)
        for name in begun:
            out, errors = outs[name]
            assert out, f"{name}: {errors[-2_000:]}"
            told = json.loads(out)
            outcome.sent[name] = told["sent"]
            outcome.attackers_cpu_s += told["cpu_s"]
            outcome.answers[name] = Counter(told["answers"])
            outcome.defects += [f"{name}: {one}" for one in told["defects"]]
            outcome.silent += [f"{name}: {one}" for one in told["silent"]]
        return outcome

    def end_amid(self, seed: int) -> tuple[int, float]:
        """Exit code, and seconds from SIGTERM to the end."""
        begun = self.begin(10**9, seed)
        time.sleep(5)
        began = time.monotonic()
        self.server.terminate()
        code = self.server.process.wait(120)
        seconds = time.monotonic() - began
        for process in begun.values():
            process.kill()
            process.communicate()
        return code, seconds

    def close(self) -> None:
        self.server.close()
