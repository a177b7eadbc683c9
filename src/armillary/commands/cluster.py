"""`armillary topology` and `armillary failover`: where an account is, and moving its writes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
import typer

from armillary.commands.errors import reporting_errors
from armillary.ring.words import plural

SERVER = typer.Argument("http://localhost:8081", help="A server: address or connection string.")
JSON = typer.Option(False, "--json", help="Answer and errors as JSON.")
TO = typer.Option(None, "--to", help="The region; without it the next by priority.")


def add_commands(app: typer.Typer) -> None:
    app.command()(topology)
    app.command()(failover)


def topology(server: str = SERVER, json: bool = JSON) -> None:
    """Show the regions of an account, its replicas, and which node holds which range.

    Examples:
      armillary topology
      armillary topology "AccountEndpoint=https://db.example:8081/;AccountKey=…;" --json
    """
    from armillary.commands.remote import Remote

    with reporting_errors(json), Remote(server) as remote:
        found = remote.control("GET", "topology")
    if json:
        typer.echo(orjson.dumps(found).decode())
        return
    for line in lines_of(found):
        typer.echo(line)


def lines_of(found: dict[str, Any]) -> list[str]:
    lines = []
    for one in found["regions"]:
        parts = [one["name"], one["endpoint"], "takes writes" if one["writes"] else "reads"]
        lines.append("  ".join(filter(None, (*parts, _replica(one["replica"])))))
    for one in found["containers"]:
        ranges = [(part["id"], part["node"]) for part in one["ranges"]]
        share = Counter(node for _, node in ranges)
        lines.append(f"{one['database']}/{one['container']}: {plural(len(ranges), 'range')}")
        for node, count in sorted(share.items()):
            names = " ".join(name for name, at in ranges if at == node)
            lines.append(f"  {node}  {count}: {names}")
    return lines


def _replica(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    if not found["reads"]:
        return f"replica {found['address']}: not read from, {found['reason']}"
    lag = "unknown" if found["lag_ms"] is None else f"{found['lag_ms']} ms"
    return f"replica {found['address']}, lag {lag}"


def failover(server: str = SERVER, to: str = TO, json: bool = JSON) -> None:
    """Move the writes of an account to another region.

    Where the regions have databases of their own ([replicas]), the standby of that region is
    promoted: the primary stops taking writes, the standby catches up, and servers follow it. A
    primary that is out of reach is not waited for. Promotions by other tools (Patroni, an operator,
    pg_promote) are followed without this command.

    Examples:
      armillary failover
      armillary failover https://db.example:8081 --to "East US"
    """
    from armillary.commands.remote import Remote

    with reporting_errors(json), Remote(server) as remote:
        done = remote.control("POST", "failover", {} if to is None else {"region": to})
        if json:
            typer.echo(orjson.dumps(done).decode())
        else:
            typer.echo(f"{done['to']} takes the writes, {done['from']} did before.")
