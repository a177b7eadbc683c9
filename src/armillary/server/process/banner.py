"""What `serve` says: for people where everything is, or one line of JSON for programs.

    Armillary 0.1.0 · .armillary                 at once
    …addresses, key, portal…                     when it is ready
    ready http://127.0.0.1:8081                  the last line: programs wait for it

A key of one's own is never printed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from armillary.api.core.settings import EMULATOR_KEY
from armillary.server.http.hosts import is_loopback
from armillary.server.process.plan import MEMORY, Plan
from armillary.version import VERSION

Say = Callable[[str], None]


class Banner(Protocol):
    def starting(self, plan: Plan) -> None: ...

    def ready(self, plan: Plan, address: str, portal_link: str) -> None: ...


@dataclass(frozen=True, slots=True)
class TextBanner:
    say: Say

    def starting(self, plan: Plan) -> None:
        self.say(f"Armillary {VERSION} · {place_of(plan)}")

    def ready(self, plan: Plan, address: str, portal_link: str) -> None:
        shown = EMULATOR_KEY
        remark = "the public key of the emulator; only this machine can connect"
        if plan.keys:
            shown, remark = "<your key>", ""
        elif not is_loopback(plan.host):
            remark = "the public key of the emulator, for whoever can reach this port"
        rows = [
            ("Endpoint", address),
            ("", f"{address.replace('http', 'https', 1)}  (armillary cert: how to trust it)"),
            ("Key", shown if not plan.keys else "your own, from ARMILLARY_KEY or the key file"),
            *([("", remark)] if remark else []),
            ("SDKs", f"AccountEndpoint={address}/;AccountKey={shown};"),
            ("Portal", portal_link),
            ("Data", data_text(plan)),
            ("Stop", "Ctrl-C"),
        ]
        self.say("")
        for name, text in rows:
            self.say(f"  {name:<9} {text}")
        self.say("")
        self.say(f"ready {address}")


@dataclass(frozen=True, slots=True)
class JsonBanner:
    say: Say

    def starting(self, plan: Plan) -> None:
        """Nothing: one line is all."""

    def ready(self, plan: Plan, address: str, portal_link: str) -> None:
        found: dict[str, object] = {"endpoint": f"{address}/", "pid": os.getpid()}
        if not plan.keys:
            found["key"] = EMULATOR_KEY
            found["connection_string"] = f"AccountEndpoint={address}/;AccountKey={EMULATOR_KEY};"
        found["portal"] = portal_link
        self.say(json.dumps(found))


def say_at_once(line: str) -> None:
    """Also into a pipe: somebody waits for `ready`."""
    try:
        print(line, flush=True)
    except UnicodeEncodeError:  # a terminal without Unicode shows question marks
        encoding = sys.stdout.encoding
        print(line.encode(encoding, "replace").decode(encoding), flush=True)


def place_of(plan: Plan) -> str:
    """Where the data is, without the password of a URL."""
    if "://" not in plan.engine or "@" not in plan.engine:
        return plan.engine
    scheme, _, rest = plan.engine.partition("://")
    return f"{scheme}://…@{rest.rpartition('@')[2]}"


def data_text(plan: Plan) -> str:
    if plan.engine == MEMORY:
        return "in memory: gone when the server stops"
    return place_of(plan) if "://" in plan.engine else str(Path(plan.engine).resolve())
