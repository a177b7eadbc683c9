"""A process that shares a store with others, and does what it is told over a pipe.

    stdin   [name of a task, arguments …]   one JSON line each
    stdout  the answer, one JSON line each

`Neighbour` is the other end: `tell` starts a task without waiting, so that several neighbours work
at once; `answer` waits for it.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import orjson
from tests.support.crash import start_python
from tests.support.workload_actions import policy_of, without_system

from armillary.account import Account, Database, open_account
from armillary.container import Container
from armillary.errors import Conflict, DbError, NotFound, PreconditionFailed

DATABASE, ITEMS = "shared", "items"
THREADS = 2


class Neighbour:
    def __init__(self, address: str) -> None:
        self._child: subprocess.Popen[bytes] = start_python("tests.support.sharing", address)

    def tell(self, task: str, *arguments: Any) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(msgspec.json.encode([task, *arguments]) + b"\n")
        self._child.stdin.flush()

    def answer(self) -> Any:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            assert self._child.stderr is not None
            raise AssertionError(f"the neighbour has died: {self._child.stderr.read().decode()}")
        return orjson.loads(line)

    def ask(self, task: str, *arguments: Any) -> Any:
        self.tell(task, *arguments)
        return self.answer()

    def close(self) -> None:
        _, errors = self._child.communicate(timeout=120)
        assert self._child.returncode == 0, errors.decode()


# --- tasks --------------------------------------------------------------------------------------


def in_threads(work: Callable[[int], None]) -> None:
    """`work` in some threads at once; an error of one is raised here."""
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def increment(database: Database, count: int) -> int:
    """Patches of one item that all processes patch."""
    items = database.container(ITEMS)
    operations = [{"op": "incr", "path": "/value", "value": 1}]

    def work(number: int) -> None:
        for _ in range(count):
            items.patch_item("counter", "hot", operations)

    in_threads(work)
    return count * THREADS


def look(database: Database) -> Any:
    """Read what `compare_and_set` will write over first."""
    _kept["looked"] = database.container(ITEMS).read_item("agreed", "hot")
    return _kept["looked"]


def compare_and_set(database: Database, count: int) -> int:
    """Read, add one, replace if nobody else has: how often somebody else had. What `look` saw is
    the first that is read."""
    items = database.container(ITEMS)
    lost = 0
    for _ in range(count):
        while True:
            item = _kept.pop("looked", None) or items.read_item("agreed", "hot")
            value: Any = item["value"]
            body = {"id": "agreed", "pk": "hot", "value": value + 1}
            try:
                items.replace_item("agreed", body, if_match=str(item["_etag"]))
                break
            except PreconditionFailed:
                lost += 1
    return lost


def fill(database: Database, who: str, common: str, count: int) -> list[str]:
    """Own items and common ones. The ids of the common ones that this process created."""
    items = database.container(ITEMS)
    won: list[str] = []

    def work(thread: int) -> None:
        for number in range(count):
            id, key = f"{who}-{thread}-{number}", f"{who}{number % 5}"
            own = {"id": id, "pk": key, "n": number}
            items.create_item(own)
            assert without_system(items.read_item(id, key)) == own
            items.upsert_item({"id": f"both{number}", "pk": common, "by": who, "n": number})
            try:
                items.create_item({"id": f"once{number}", "pk": common, "by": who})
                won.append(f"once{number}")
            except Conflict:
                pass

    in_threads(work)
    return won


def change_policy(database: Database, count: int) -> int:
    for number in range(count):
        database.replace_container(ITEMS, indexingPolicy=policy_of(number))
    return count


def recreate(database: Database, name: str, count: int) -> int:
    for _ in range(count):
        database.delete_container(name)
        database.create_container(name, "/pk")
    return count


def write_anyway(database: Database, name: str, who: str, count: int) -> list[Any]:
    """Writes into a container that comes and goes: (what happened, ids by container)."""
    container: Container | None = None
    told: Counter[str] = Counter()
    written: dict[str, list[str]] = {}
    number = 0
    while told["written"] < count:
        number += 1
        try:
            container = container or database.container(name)  # it may be away just now
            made = container.upsert_item({"id": f"{who}{number}", "pk": who})
            told["written"] += 1
            written.setdefault(str(made["_self"]).split("/docs/")[0], []).append(str(made["id"]))
            container.read_item(f"{who}{number}", who)
        except DbError as error:
            told[type(error).__name__] += 1
    return [dict(told), written]


def write(database: Database, name: str, item: dict[str, Any]) -> Any:
    return database.container(name).upsert_item(item)


def read(database: Database, name: str, id: str, key: str) -> Any:
    """Through a container that this process keeps, as a long-lived client does."""
    kept = _kept.get(name)
    if kept is None:
        kept = _kept[name] = database.container(name)
    try:
        return kept.read_item(id, key)
    except NotFound as error:
        return type(error).__name__


def make(database: Database, name: str) -> list[str]:
    database.create_container(name, "/pk")
    return database.containers()


def remove(database: Database, name: str) -> list[str]:
    database.delete_container(name)
    return database.containers()


def listed(database: Database) -> list[str]:
    return database.containers()


TASKS: dict[str, Callable[..., Any]] = {
    task.__name__: task
    for task in (
        increment,
        look,
        compare_and_set,
        fill,
        change_policy,
        recreate,
        write_anyway,
        write,
        read,
        make,
        remove,
        listed,
    )
}
_kept: dict[str, Any] = {}


def set_up(account: Account) -> None:
    database = account.create_database(DATABASE)
    items = database.create_container(ITEMS, "/pk", physical_partitions=2)
    for name in ("counter", "agreed"):
        items.create_item({"id": name, "pk": "hot", "value": 0})


def main() -> None:
    with open_account(sys.argv[1]) as account:
        database = account.database(DATABASE)
        for line in sys.stdin.buffer:
            task, *arguments = orjson.loads(line)
            sys.stdout.buffer.write(orjson.dumps(TASKS[task](database, *arguments)) + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
