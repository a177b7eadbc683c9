"""What `serve` says: for people where everything is, or one line of JSON for programs.

    Armillary 0.2.0 · .armillary                 at once
    …addresses, key, portal…                     when it is ready
    ready http://127.0.0.1:8081                  the last line: programs wait for it

A key of one's own is never printed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

from armillary.api.core.settings import EMULATOR_KEY
from armillary.engine.address import parse_address, without_password
from armillary.server.http.hosts import is_loopback
from armillary.server.process.plan import Plan
from armillary.version import VERSION, install_hint

Say = Callable[[str], None]
NO_PORTAL: Final = f"not installed: {install_hint('portal')}"
#: Whether requests above the provisioned throughput are refused, and the setting.
ENFORCED: Final[Mapping[str, str]] = {
    "on": "enforced: requests above them get 429 (--enforce off, or throughput.enforce)",
    "report": "counted, not enforced (throughput.enforce)",
    "off": "not enforced (throughput.enforce)",
}


@dataclass(frozen=True, slots=True)
class Up:
    """Where a server answers."""

    address: str
    ports: Mapping[str, int] = field(default_factory=dict)
    """Of the protocols alongside the first."""
    off: Mapping[str, str] = field(default_factory=dict)
    """Why one is not served."""


class Banner(Protocol):
    def starting(self, plan: Plan) -> None: ...

    def ready(self, plan: Plan, up: Up, portal_link: str) -> None: ...


@dataclass(frozen=True, slots=True)
class TextBanner:
    say: Say

    def starting(self, plan: Plan) -> None:
        self.say(f"Armillary {VERSION} · {without_password(plan.engine)}")

    def ready(self, plan: Plan, up: Up, portal_link: str) -> None:
        address = up.address
        shown = EMULATOR_KEY
        remark = "the public key of the emulator; only this machine can connect"
        if plan.keys:
            shown, remark = "<your key>", ""
        elif not is_loopback(plan.host):
            remark = "the public key of the emulator, for every client that can reach this port"
        rows = [
            ("Endpoint", address),
            ("", f"{address.replace('http', 'https', 1)}  (armillary cert: how to trust it)"),
            ("Key", shown if not plan.keys else "your own, from ARMILLARY_KEY or the key file"),
            *([("", remark)] if remark else []),
            ("SDKs", f"AccountEndpoint={address}/;AccountKey={shown};"),
            *others(plan, up, shown),
            ("Portal", portal_link if find_spec("nicegui") else NO_PORTAL),
            ("RU/s", ENFORCED[plan.settings.throughput.enforce]),
            ("Data", parse_address(plan.engine).shown),
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

    def ready(self, plan: Plan, up: Up, portal_link: str) -> None:
        address = up.address
        found: dict[str, object] = {"endpoint": f"{address}/", "pid": os.getpid()}
        found["ports"] = dict(up.ports)
        if not plan.keys:
            found["key"] = EMULATOR_KEY
            found["connection_string"] = f"AccountEndpoint={address}/;AccountKey={EMULATOR_KEY};"
        found["portal"] = portal_link
        self.say(json.dumps(found))


def others(plan: Plan, up: Up, key: str) -> list[tuple[str, str]]:
    """A line for each protocol alongside NoSQL: how a client connects, or why it can't."""
    rows = []
    for spec in plan.protocols[1:]:
        if spec.name in up.off:
            rows.append((spec.title, f"off: {up.off[spec.name]}"))
        elif spec.name in up.ports:
            facts = {
                "port": up.ports[spec.name],
                "key": key,
                "key_quoted": quote(key, safe="<> "),
                "account": plan.settings.server.account,
                "ca": str(Path(plan.data).resolve() / "tls" / "cert.pem"),
            }
            rows += [(spec.title, line.format(**facts)) for line in spec.shown]
    return rows


def say_at_once(line: str) -> None:
    """Also into a pipe: somebody waits for `ready`."""
    try:
        print(line, flush=True)
    except UnicodeEncodeError:  # a terminal without Unicode shows question marks
        encoding = sys.stdout.encoding
        print(line.encode(encoding, "replace").decode(encoding), flush=True)
