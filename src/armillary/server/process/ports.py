"""The ports of the protocols alongside the first: bound where they are free.

A port that was chosen has to be had, or the server does not start. One that was not chosen may be
taken by another server on this machine: its protocol is off then, and the banner says why.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from armillary.server.binding import PortBusy, bind, check_free
from armillary.server.process.plan import Plan

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bound:
    sockets: dict[str, list[socket.socket]]
    """By protocol."""
    off: dict[str, str]
    """Why a protocol has none."""

    def close(self) -> None:
        for sockets in self.sockets.values():
            for one in sockets:
                one.close()


def flag_of(name: str) -> str:
    return f"--{name}-port"


def bind_others(plan: Plan) -> Bound:
    sockets, off = _each(plan, lambda name, port: bind(plan.host, port, flag=flag_of(name)))
    return Bound(sockets, off)


def free_others(plan: Plan) -> tuple[Plan, dict[str, str]]:
    """The plan with ports that are known to be free and not 0, for workers that bind them."""
    ports, off = _each(plan, lambda name, port: check_free(plan.host, port, flag_of(name)))
    return replace(plan, ports=ports), off


def bind_all(plan: Plan, *, shared: bool, listen: bool) -> dict[str, list[socket.socket]]:
    """Every port of the plan; `shared` lets other processes of ours bind them as well."""
    ports = {plan.protocols[0].name: plan.port, **plan.ports}
    bound = {
        name: bind(plan.host, port, shared=shared, listen=listen) for name, port in ports.items()
    }
    for port in plan.region_ports:
        bound[plan.protocols[0].name] += bind(plan.host, port, shared=shared, listen=listen)
    return bound


def bind_first(plan: Plan) -> list[socket.socket]:
    """The port of the first protocol, and those of simulated regions."""
    sockets = bind(plan.host, plan.port)
    for port in plan.region_ports:
        sockets += bind(plan.host, port, flag="regions.endpoints")
    return sockets


def ports_of(sockets: Mapping[str, list[socket.socket]]) -> dict[str, int]:
    return {name: int(found[0].getsockname()[1]) for name, found in sockets.items()}


def _each(plan: Plan, take: Callable[[str, int], T]) -> tuple[dict[str, T], dict[str, str]]:
    got: dict[str, T] = {}
    off: dict[str, str] = {}
    for name, port in plan.ports.items():
        try:
            got[name] = take(name, port)
        except PortBusy:
            if name in plan.asked_ports:
                raise
            off[name] = f"port {port} is in use; {flag_of(name)} 0 picks a free one"
    for spec in plan.protocols:
        if spec.name not in plan.ports and (why := spec.missing()) is not None and spec.is_built:
            off[spec.name] = why
    return got, off
