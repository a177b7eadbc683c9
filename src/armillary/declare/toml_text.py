"""Declarations as the text of an `armillary.toml`, and the commented one that `init` writes."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from armillary.config import Settings
from armillary.declare.declared import DeclaredContainer, DeclaredDatabase
from armillary.declare.files import POLICIES, SCRIPT_KEYS

_PLAIN_KEY = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def databases_text(databases: Iterable[DeclaredDatabase]) -> str:
    return "\n".join(line for one in databases for line in _database(one))


def _database(database: DeclaredDatabase) -> list[str]:
    tables = [one for one in database.containers if one.api == "table"]
    collections = [one for one in database.containers if one.api == "mongo"]
    others = [one for one in database.containers if one.api not in ("table", "mongo")]
    lines: list[str] = []
    if others or collections or _throughput(database) or not tables:
        lines = ["[[database]]", f"id = {value_text(database.id)}", *_throughput(database), ""]
    for container in others:
        lines += [*_container(container), ""]
    for container in collections:
        lines += [*_collection(container), ""]
    for one in tables:
        lines += ["[[tables]]", f"id = {value_text(one.id)}", *_throughput(one), ""]
    return lines


def _container(container: DeclaredContainer) -> list[str]:
    body = container.body
    lines = ["[[database.container]]", f"id = {value_text(container.id)}"]
    key = body["partitionKey"]
    paths = key["paths"]
    usual = key.get("version", 2) == 2
    if key.get("systemKey"):
        lines.append("fixed = true")  # without a key
    elif usual and key.get("kind") == "Hash":
        lines.append(f"partition_key = {value_text(paths[0])}")
    elif usual:
        lines.append(f"partition_key = {value_text(paths)}")
    else:
        lines.append(f"partition_key = {value_text(key)}")
    if container.api == "gremlin":
        lines.append("graph = true")
    lines += _throughput(container)
    if container.fixed and not key.get("systemKey"):
        lines.append("fixed = true")
    for name, (property_name, _) in POLICIES.items():
        if property_name in body:
            lines.append(f"{name} = {value_text(body[property_name])}")
    if "uniqueKeyPolicy" in body:
        keys = [one["paths"] for one in body["uniqueKeyPolicy"]["uniqueKeys"]]
        lines.append(f"unique_keys = {value_text(keys)}")
    if "changeFeedPolicy" in body:
        minutes = body["changeFeedPolicy"]["retentionDuration"]
        lines.append(f"change_feed_retention_minutes = {minutes}")
    return [*lines, *_scripts(container)]


def _scripts(container: DeclaredContainer) -> list[str]:
    """With their texts, each on a line of its own."""
    lines: list[str] = []
    for kind, key in SCRIPT_KEYS.items():
        bodies = [one.body for one in container.scripts if one.kind == kind]
        if not bodies:
            continue
        lines.append(f"{key} = [")
        for body in bodies:
            given = {"id": body["id"], "text": body["body"]}
            if kind == "trigger":
                given |= {"type": body["triggerType"], "operation": body["triggerOperation"]}
            lines.append(f"  {value_text(given)},")
        lines.append("]")
    return lines


def _collection(container: DeclaredContainer) -> list[str]:
    from armillary.declare.collections import index_tables

    own = container.body.get("mongo", {})
    lines = ["[[database.collection]]", f"id = {value_text(container.id)}"]
    if own.get("shardKey") is not None:
        lines.append(f"shard_key = {value_text(own['shardKey'])}")
    indexes = index_tables(own.get("indexes", []))
    if indexes:
        lines.append(f"indexes = {value_text(indexes)}")
    return [*lines, *_throughput(container)]


def _throughput(one: DeclaredDatabase | DeclaredContainer) -> list[str]:
    if one.autoscale_max is not None:
        return [f"autoscale_max = {one.autoscale_max}"]
    return [] if one.throughput is None else [f"throughput = {one.throughput}"]


def value_text(value: Any) -> str:
    """A value on one line. JSON's strings are TOML's, but for DEL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = (f"{_key(k)} = {value_text(v)}" for k, v in value.items() if v is not None)
        return "{ " + ", ".join(pairs) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return repr(value)


def _key(name: str) -> str:
    return name if name and _PLAIN_KEY.issuperset(name) else value_text(name)


def starter_text() -> str:
    """What `armillary init` writes: everything that can be set, commented out at its default."""
    plain = Settings.default()
    return f"""\
# Armillary reads this file when it starts here: `armillary serve`.
# A flag goes before an ARMILLARY_* variable, and that before this file. Lines that begin with #
# show the defaults.

[server]
# host = {value_text(plain.server.host)}
# port = {plain.server.port}
# workers = {value_text(plain.server.workers)}              # or "auto": one per core
# key_file = "keys.txt"      # needed when others can reach the address; one key per line

[engine]
# url = {value_text(plain.engine.url)}      # a folder, ":memory:" or "postgresql://…"
# durability = "full"        # "relaxed" for throw-away data

# Small numbers here let you watch splits on a laptop: bytes = "2MB", ru = 1000.
[partition]
# bytes = "50GB"             # a physical partition splits at this size
# ru = {plain.partition.ru}                 # the RU/s that a physical partition serves
# logical_bytes = "20GB"     # what one partition key value may hold

[throughput]
# enforce = "on"             # "report": count what would be refused; "off"
# profile = "default"        # "classic": the round figures of the old documents
# burst = false

[query]
# gateway_merge = false      # true: merge queries over several partitions on the server

# Databases and containers that are to exist; made at the start if they are not there.
#
# [[database]]
# id = "shop"
# throughput = 1000          # shared by containers without their own; or autoscale_max = 4000
#
# [[database.container]]
# id = "orders"
# partition_key = "/customerId"             # hierarchical: ["/tenantId", "/userId"]
# throughput = 400
# default_ttl = 2592000                     # seconds
# unique_keys = ["/number"]
# seed = ["orders.jsonl"]                   # put in once, when the container is new
# procedures = ["scripts/transfer.js"]      # JavaScript; each is named by its file
#                                           # or {{ id = "transfer", text = "function () …" }}
# functions = ["scripts/tax.js"]            # for queries: udf.tax(c.price)
# triggers = [{{ file = "scripts/check.js", type = "Pre", operation = "Create" }}]
#
# [[database.container]]
# id = "readings"
# synthetic_key = {{ version = 1, path = "/partitionKey", parts = ["/date"], separator = ".", \
suffix = {{ kind = "computed", k = 400, source = "/vin" }} }}
#
# [[database.collection]]                   # of the MongoDB API
# id = "people"
# shard_key = "region"                      # without one: a single logical partition
# indexes = ["email", {{ key = {{ age = 1, name = -1 }} }}]
# seed = ["people.jsonl"]                   # Extended JSON
"""
