"""`armillary databases` and `armillary containers`: create, list, show, delete and scale them, in a
data folder or behind a server.

Both go by the NoSQL API: a folder is asked in this process, a server over its address. So the
rules, and what is said when one is broken, are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
import typer

from armillary.account import open_account
from armillary.api.core.client_signing import signed_headers
from armillary.api.core.gateway import Gateway
from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.core.signing import Signer
from armillary.api.http.messages import Request
from armillary.api.nosql.service import NosqlService
from armillary.commands.errors import EXIT_FAILED, EXIT_USAGE, CommandError, reporting_errors
from armillary.commands.help_text import help_of
from armillary.commands.remote import Remote, Reply, is_remote, path_of, read_reply
from armillary.commands.sources import Door, existing, listed
from armillary.encoding.rids import parse_rid
from armillary.errors import Conflict
from armillary.ring.words import plural
from armillary.units import bytes_text

AUTOSCALE: Final = "x-ms-cosmos-offer-autopilot-settings"
DATA = typer.Option(
    ".armillary", "--data", help="A folder, 'postgresql://…', a server or a connection string."
)
JSON = typer.Option(False, "--json", help="Answer and errors as JSON.")
YES = typer.Option(False, "--yes", "-y", help="Do not ask.")
THROUGHPUT = typer.Option(None, "--throughput", min=400, help="RU/s of its own.")
AUTO = typer.Option(None, "--autoscale", min=1000, help="The maximum of autoscale in RU/s.")
KEY = typer.Option((), "--key", "--partition-key", "-k", help="A path; repeat it for levels.")


def _name(text: str | None) -> str | None:
    """`query` and `partitions` take an address first, so people write one here too."""
    if text is not None and is_remote(text):
        raise typer.BadParameter("this is a name; an address goes with --data")
    return text


DATABASE = typer.Argument(help="The database.", callback=_name)
CONTAINER = typer.Argument(help="The container.", callback=_name)
ANY_DATABASE = typer.Argument(None, help="The database; without it, of all.", callback=_name)


class _Folder:
    """The NoSQL API of an account in this process."""

    def __init__(self, gateway: Gateway) -> None:
        self._service = NosqlService(gateway)
        self._signer = Signer(EMULATOR_KEY)

    def rest(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        own = {"host": "localhost", **signed_headers(self._signer, method, path)}
        content = b"" if body is None else orjson.dumps(body)
        found = self._service.handle(
            Request(method, f"/{path}", own | dict(headers or {}), content)
        )
        return read_reply(found.status, found.headers, found.body)


@contextmanager
def opened(data: str) -> Iterator[Door]:
    if is_remote(data):
        with Remote(data) as remote:
            yield remote
        return
    with open_account(data, housekeeping=False) as account:
        gateway = Gateway(account.store)
        try:
            yield _Folder(gateway)
            account.settle()  # what a change of throughput asks for
        finally:
            gateway.close()


def add_commands(app: typer.Typer) -> None:
    for what, commands in GROUPS.items():
        group = typer.Typer(no_args_is_help=True, help=f"Create, list, scale or delete {what}.")
        for command in commands:
            name = command.__name__.partition("_")[0]
            group.command(name, help=help_of(command))(command)
        app.add_typer(group, name=what)


# --- databases ----------------------------------------------------------------------------------


def create_database(
    database: str = DATABASE,
    throughput: int = THROUGHPUT,
    autoscale: int = AUTO,
    data: str = DATA,
    json: bool = JSON,
) -> None:
    """Make a database. With throughput its containers share it.

    Examples:
      armillary databases create shop
      armillary databases create shop --throughput 1000 --data http://localhost:8081
    """
    with reporting_errors(json), opened(data) as door:
        with _new(f"database {database}"):
            door.rest("POST", "dbs", {"id": database}, offered(throughput, autoscale))
        tell(json, {"database": database}, f"Made database {database}.")


def list_databases(data: str = DATA, json: bool = JSON) -> None:
    """The databases of an account, with what their containers share.

    Examples:
      armillary databases list
    """
    with reporting_errors(json), opened(data) as door:
        known = offers_of(door)
        found = [
            {"id": one["id"], "throughput": known.get(one["_rid"])}
            for one in listed(door, "dbs", "Databases")
        ]
        lines = [
            f"{one['id']}  {words(one['throughput'], 'no shared throughput')}" for one in found
        ]
        tell(json, found, "\n".join(lines) or "There are no databases.")


def show_database(database: str = DATABASE, data: str = DATA, json: bool = JSON) -> None:
    """One database: its containers, and the throughput that they share.

    Examples:
      armillary databases show shop
    """
    with reporting_errors(json), opened(data) as door:
        there = existing(door, database).body
        known = offers_of(door)
        shared = known.get(there["_rid"])
        found = containers_of(door, database, known)
        lines = [f"{database}  {words(shared, 'no shared throughput')}", *map(line_of, found)]
        tell(json, {"id": database, "throughput": shared, "containers": found}, "\n".join(lines))


def delete_database(
    database: str = DATABASE, yes: bool = YES, data: str = DATA, json: bool = JSON
) -> None:
    """Delete a database and everything in it.

    Examples:
      armillary databases delete shop --yes
    """
    with reporting_errors(json), opened(data) as door:
        existing(door, database)
        confirm(yes, f"database {database} and all its containers")
        door.rest("DELETE", path_of("dbs", database))
        tell(json, {"deleted": database}, f"Deleted database {database}.")


def scale_database(
    database: str = DATABASE,
    throughput: int = THROUGHPUT,
    autoscale: int = AUTO,
    data: str = DATA,
    json: bool = JSON,
) -> None:
    """Change the throughput that the containers of a database share.

    Examples:
      armillary databases scale shop --throughput 2000
    """
    with reporting_errors(json), opened(data) as door:
        there = existing(door, database).body
        rescale(door, there["_rid"], f"database {database}", throughput, autoscale, json)


# --- containers ---------------------------------------------------------------------------------


def create_container(
    database: str = DATABASE,
    container: str = CONTAINER,
    key: list[str] = KEY,
    throughput: int = THROUGHPUT,
    autoscale: int = AUTO,
    ttl: int = typer.Option(None, help="Seconds that items live; -1: only those that say so."),
    fixed: bool = typer.Option(False, "--fixed", help="As in 2018: one partition; key optional."),
    graph: bool = typer.Option(False, "--graph", help="A graph, for the Gremlin API."),
    data: str = DATA,
    json: bool = JSON,
) -> None:
    """Make a container. Its database is made too if there is none of that name.

    Examples:
      armillary containers create shop orders --key /customerId
      armillary containers create shop events --key /tenant --key /user --autoscale 4000
      armillary containers create shop old --fixed --data http://localhost:8081
    """
    with reporting_errors(json), opened(data) as door:
        if not key and not fixed:
            raise CommandError(
                "Say --key /path (or --fixed for a container without one).", EXIT_USAGE
            )
        body: dict[str, Any] = {"id": container}
        if key:
            kind = "Hash" if len(key) == 1 else "MultiHash"
            body["partitionKey"] = {"paths": list(key), "kind": kind, "version": 2}
        if ttl is not None:
            body["defaultTtl"] = ttl
        headers = offered(throughput, autoscale)
        headers |= {"x-armillary-kind": "fixed"} if fixed else {}
        headers |= {"x-armillary-api": "gremlin"} if graph else {}
        if not any(one["id"] == database for one in listed(door, "dbs", "Databases")):
            door.rest("POST", "dbs", {"id": database})
        with _new(f"container {database}/{container}"):
            made = door.rest("POST", path_of("dbs", database, "colls"), body, headers).body
        known = offers_of(door)
        found = described(door, database, made, known)
        tell(json, found, f"Made container {line_of(found)}")


def list_containers(
    database: str = ANY_DATABASE,
    data: str = DATA,
    json: bool = JSON,
) -> None:
    """The containers of a database, or of the account: key, throughput, physical partitions.

    Examples:
      armillary containers list
      armillary containers list shop --json
    """
    with reporting_errors(json), opened(data) as door:
        known = offers_of(door)
        names = [database] if database else [one["id"] for one in listed(door, "dbs", "Databases")]
        if database:
            existing(door, database)
        found = [one for name in names for one in containers_of(door, name, known)]
        tell(json, found, "\n".join(map(line_of, found)) or "There are no containers.")


def show_container(
    database: str = DATABASE, container: str = CONTAINER, data: str = DATA, json: bool = JSON
) -> None:
    """One container: key, throughput, physical partitions, items and bytes.

    Examples:
      armillary containers show shop orders
    """
    with reporting_errors(json), opened(data) as door:
        quota = {"x-ms-documentdb-populatequotainfo": "true"}
        reply = existing(door, database, container, quota)
        found = described(door, database, reply.body, offers_of(door))
        usage = dict(
            part.split("=") for part in reply.headers["x-ms-resource-usage"].split(";") if part
        )
        items, kb = int(usage["documentsCount"]), int(usage["collectionSize"])
        found |= {"items": items, "bytes": kb * 1024}
        tell(json, found, f"{line_of(found)}\n{plural(items, 'item')}, {bytes_text(kb * 1024)}")


def delete_container(
    database: str = DATABASE,
    container: str = CONTAINER,
    yes: bool = YES,
    data: str = DATA,
    json: bool = JSON,
) -> None:
    """Delete a container and its items.

    Examples:
      armillary containers delete shop orders --yes
    """
    with reporting_errors(json), opened(data) as door:
        existing(door, database, container)
        confirm(yes, f"container {container} and its items")
        door.rest("DELETE", path_of("dbs", database, "colls", container))
        tell(json, {"deleted": f"{database}/{container}"}, f"Deleted {database}/{container}.")


def scale_container(
    database: str = DATABASE,
    container: str = CONTAINER,
    throughput: int = THROUGHPUT,
    autoscale: int = AUTO,
    data: str = DATA,
    json: bool = JSON,
) -> None:
    """Change the throughput of a container; more than its partitions can serve splits them.

    Examples:
      armillary containers scale shop orders --throughput 20000
    """
    with reporting_errors(json), opened(data) as door:
        there = existing(door, database, container).body
        rescale(door, there["_rid"], f"container {container}", throughput, autoscale, json)


GROUPS: Final[dict[str, tuple[Callable[..., None], ...]]] = {
    "databases": (create_database, list_databases, show_database, delete_database, scale_database),
    "containers": (
        create_container,
        list_containers,
        show_container,
        delete_container,
        scale_container,
    ),
}


# --- what they share ----------------------------------------------------------------------------


def tell(as_json: bool, facts: Any, text: str) -> None:
    typer.echo(orjson.dumps(facts) if as_json else text)


@contextmanager
def _new(what: str) -> Iterator[None]:
    try:
        yield
    except Conflict as error:
        raise CommandError(f"There is a {what} already.", EXIT_FAILED) from error


def confirm(yes: bool, what: str) -> None:
    if not yes and not typer.confirm(f"Delete {what}? This can't be undone."):
        raise CommandError("Nothing was deleted.", EXIT_USAGE)


def offered(throughput: int | None, autoscale: int | None) -> dict[str, str]:
    if throughput is not None and autoscale is not None:
        raise CommandError("Say --throughput or --autoscale, not both.", EXIT_USAGE)
    if autoscale is not None:
        return {AUTOSCALE: f'{{"maxThroughput":{autoscale}}}'}
    return {} if throughput is None else {"x-ms-offer-throughput": str(throughput)}


def offers_of(door: Door) -> dict[str, dict[str, Any]]:
    """By the rid of what they are for."""
    return {one["offerResourceId"]: _offer(one) for one in listed(door, "offers", "Offers")}


def _offer(offer: dict[str, Any]) -> dict[str, Any]:
    auto = offer["content"].get("offerAutopilotSettings")
    if auto:
        return {"kind": "autoscale", "ru": auto["maxThroughput"]}
    return {"kind": "manual", "ru": offer["content"]["offerThroughput"]}


def containers_of(
    door: Door, database: str, known: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    path = path_of("dbs", database, "colls")
    return [
        described(door, database, one, known) for one in listed(door, path, "DocumentCollections")
    ]


def described(
    door: Door, database: str, container: dict[str, Any], known: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    path = path_of("dbs", database, "colls", container["id"], "pkranges")
    ranges = door.rest("GET", path).body["PartitionKeyRanges"]
    return {
        "database": database,
        "id": container["id"],
        "partition_key": container["partitionKey"]["paths"],
        "keyless": bool(container["partitionKey"].get("systemKey")),
        "throughput": known.get(container["_rid"]),
        "shared_throughput": known.get(parse_rid(container["_rid"]).parent),
        "partitions": len(ranges),
    }


def line_of(one: dict[str, Any]) -> str:
    key = "no key (fixed)" if one["keyless"] else ", ".join(one["partition_key"])
    ru = words(one["throughput"], "serverless")
    if one["throughput"] is None and one["shared_throughput"] is not None:
        ru = f"shares {words(one['shared_throughput'], '')} of its database"
    parts = plural(one["partitions"], "physical partition")
    return f"{one['database']}/{one['id']}  {key}  {ru}  {parts}"


def words(offer: dict[str, Any] | None, none: str) -> str:
    if offer is None:
        return none
    up_to = "up to " if offer["kind"] == "autoscale" else ""
    return f"{up_to}{offer['ru']:,} RU/s"


def rescale(
    door: Door, rid: str, what: str, throughput: int | None, autoscale: int | None, as_json: bool
) -> None:
    wanted = autoscale if throughput is None else throughput
    if wanted is None or (throughput is not None and autoscale is not None):
        raise CommandError("Say --throughput or --autoscale with the new RU/s.", EXIT_USAGE)
    offers = [one for one in listed(door, "offers", "Offers") if one["offerResourceId"] == rid]
    if not offers:
        raise CommandError(f"The {what} has no throughput of its own.", EXIT_USAGE)
    (offer,) = offers
    is_auto = bool(offer["content"].get("offerAutopilotSettings"))
    if is_auto != (autoscale is not None):
        has = "autoscale" if is_auto else "manual throughput"
        raise CommandError(f"The {what} has {has}; its kind does not change here.", EXIT_USAGE)
    if is_auto:
        offer["content"]["offerAutopilotSettings"] = {"maxThroughput": wanted}
    else:
        offer["content"]["offerThroughput"] = wanted
    path = urlsplit(offer["_self"]).path.strip("/")
    door.rest("PUT", path, offer)
    tell(as_json, {"throughput": wanted}, f"Asked for {wanted:,} RU/s for {what}.")
