"""The workload on a disk that fails, or that is only watched: crash_child.py under fault_shim.c."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.crash import Listener, give, start_child
from tests.support.crash_child import Job
from tests.support.crash_ledger import Ledger
from tests.support.workload_actions import set_up

from armillary.account import open_account
from armillary.engine.base import Durability

SEED = 7


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    errors: str
    failed: dict[str, str]
    """By owner: the name of the error."""
    done: bool
    log: list[str]
    """What the shim saw."""


def run_on_faulty_disk(
    shim: Path,
    folder: Path,
    ledger: Ledger,
    actions: int,
    durability: Durability = "full",
    **faults: str,
) -> Ended:
    """A new store, made on a good disk; then the workload on one with these faults."""
    folder.mkdir()
    address, log = str(folder / "data"), folder / "log"
    with open_account(address, durability=durability, housekeeping=False) as account:
        set_up(account, ledger.states)
    child = start_child({"LD_PRELOAD": str(shim), "FAULT_LOG": str(log), **faults})
    listener = Listener(child, ledger.hear)
    options = {"housekeeping": False}
    job = Job(address, SEED, ledger.states, ledger.numbers, actions=actions, options=options)
    give(child, replace(job, faults=str(folder), durability=durability))
    listener.wait("end")
    errors = listener.finish()
    failed = {owner: said.split()[1].rstrip(":") for owner, said in ledger.failed.items()}
    return Ended(
        child.returncode, errors, failed, "done" in ledger.said, log.read_text().splitlines()
    )


def before_each_ack(log: list[str]) -> list[list[str]]:
    """The events since the acknowledgement before."""
    parts: list[list[str]] = [[]]
    for line in log:
        if line == "ack":
            parts.append([])
        else:
            parts[-1].append(line)
    return parts[:-1]


def why_not_durable(events: list[str]) -> str:
    """A record of the redo log, and a sync of it. Before it, where LMDB had to do something too:
    pages, then a sync that covers all of them, then a meta page that is itself synced."""
    if "redo" not in events:
        return "no record was written"
    record = len(events) - 1 - events[::-1].index("redo")
    if "redo sync" not in events[record:]:
        return "the record was not synced"
    events = [event for event in events[:record] if not event.startswith("redo")]
    return _why_not_committed(events) if events else ""


def _why_not_committed(events: list[str]) -> str:
    metas = [at for at, event in enumerate(events) if event.startswith("meta")]
    if not metas:
        return "no meta page was written"
    before, after = events[: metas[-1]], events[metas[-1] + 1 :]
    if "data" not in before:
        return "no data was written"
    if "sync" not in before:
        return "the data was not synced"
    if "data" in before[len(before) - before[::-1].index("sync") :]:
        return "data was written after the last sync"
    if events[metas[-1]] != "meta dsync" and "sync" not in after:
        return "the meta page was not synced"
    return ""
