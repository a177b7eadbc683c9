"""No transaction touches two spaces, and each begins with its fence: read from the server's log.

This is what lets a space live on any shard of Citus, and what makes stale caches harmless.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import psycopg
import pytest
from tests.support.counting import COUNTING
from tests.support.postgres import fresh_url, open_postgres, server_url

from armillary.engine.base import META_KEY, Command

pytestmark = pytest.mark.postgres

LINE = re.compile(r"^\S+ \S+ \S+ \[(\d+)\] (LOG|DETAIL): +(.*)$")
FENCE = re.compile(r"key = '\\x00'::bytea|VALUES \(\$1::int, '\\x00'|key = ''::bytea")
SPACES = {"7": "seven", "8": "eight"}


def _server_log() -> Path:
    with psycopg.connect(server_url()) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    log = Path(row[0]) / "log"
    if not log.is_file():
        pytest.skip("the log of this PostgreSQL is somewhere else")
    return log


def _transactions(log: str, schema: str) -> list[list[tuple[str, str]]]:
    """Per connection, from BEGIN to its end: (statement, arguments), those of our schema."""
    done: list[list[tuple[str, str]]] = []
    running: dict[str, list[tuple[str, str]]] = defaultdict(list)
    inside: set[str] = set()
    for line in log.splitlines():
        matched = LINE.match(line)
        if matched is None:
            continue
        pid, kind, text = matched.groups()
        if kind == "DETAIL":
            if running[pid]:
                statement, _ = running[pid][-1]
                running[pid][-1] = (statement, text)
                if pid not in inside:
                    done.append([running[pid].pop()])
        elif ": BEGIN" in text:
            inside.add(pid)
        elif ": COMMIT" in text or ": ROLLBACK" in text:
            inside.discard(pid)
            done.append(running.pop(pid, []))
        elif f'"{schema}"."armillary_rows"' in text and "execute" in text:
            running[pid].append((text, ""))
    return [transaction for transaction in done if transaction]


def test_each_transaction_reads_its_fence_first_and_touches_one_space() -> None:
    log = _server_log()
    before = log.stat().st_size
    url = fresh_url()
    schema = url.rpartition("schema=")[2]
    engine = open_postgres(COUNTING, f"{url}&options=-c%20log_statement%3Dall")
    for space in (7, 8):
        engine.create_space(space, [(META_KEY, b"0"), (b"\x11a", b"x"), (b"\x21a", b"a")])
    futures = [engine.submit(7 + n % 2, Command("add", b"")) for n in range(40)]
    futures += [engine.submit(7, Command("move", (b"\x11a", b"\x11b")))]
    futures += [engine.submit(8, Command("read_then_add", b""))]
    for future in futures:
        future.result()
    for space in (7, 8):
        engine.read_via(space, b"\x21a", b"\x11")
        with engine.read(space) as reader:
            list(reader.scan(b"\x91", b"\x92"))
            reader.get_many([b"\x11a", b"\x11b"])
            reader.get_via(b"\x21a", b"\x11")
    engine.drop_space(8)
    engine.close()

    with log.open("rb") as file:
        file.seek(before)
        transactions = _transactions(file.read().decode(), schema)
    kinds = set()
    for transaction in transactions:
        first = transaction[0][0]
        if "SELECT space FROM" in first:
            continue  # the two listings, each one statement
        assert FENCE.search(first), transaction
        named = {
            argument
            for _, arguments in transaction
            for argument in re.findall(r"= '(\d+)'", arguments)
            if argument in SPACES
        }
        assert len(named) == 1, transaction
        kinds.add((len(transaction), *named))
    # That the log was really understood: transactions of several statements, in both spaces.
    assert {name for _, name in kinds} == set(SPACES)
    assert max(size for size, _ in kinds) >= 3
    assert len(transactions) >= 10
