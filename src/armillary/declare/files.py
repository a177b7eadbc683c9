"""`armillary.toml`: settings and declared databases, each error with file and line.

    [partition]                      settings, by the names of config.py
    bytes = "2MB"

    [[database]]                     what is to exist
    id = "shop"

    [[database.container]]
    id = "orders"
    partition_key = "/customerId"    several paths: hierarchical
    throughput = 400                 or autoscale_max
    graph = true                     its key must be one that the Gremlin API can use
    seed = ["orders.jsonl"]          relative to the file
    procedures = ["transfer.js"]     scripts from files; also functions, triggers

    [[database.collection]]          of the MongoDB API
    id = "people"
    shard_key = "region"             without one: a single logical partition
    indexes = ["email", { key = { age = 1, name = -1 }, unique = true }]

    [[tables]]                       of the Table API, in database TablesDB
    id = "people"
    throughput = 800

A key that is not known is an error: a setting silently not applied is worse than a failed start.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from armillary.config import Layer, sections
from armillary.declare.declared import DeclaredContainer, DeclaredDatabase, DeclaredScript, Place
from armillary.declare.lines import KeyPath, key_lines, line_of
from armillary.errors import BadInput, TooLarge
from armillary.query.sql.computed import check_computed
from armillary.scripts.scripts import Kind, check_script
from armillary.store.catalog.definitions import parse_container
from armillary.store.catalog.graphs import graph_key
from armillary.store.catalog.tables import TABLES_DB, table_definition
from armillary.version import install_hint

DEFAULT_NAME = "armillary.toml"


@dataclass(frozen=True, slots=True)
class ConfigFile:
    path: Path
    settings: Layer
    databases: tuple[DeclaredDatabase, ...] = ()


def find_file(asked: Path | None, folder: Path) -> Path | None:
    """The file that was asked for, or the one in the folder; None when there is neither."""
    if asked is not None:
        return asked
    here = folder / DEFAULT_NAME
    return here if here.is_file() else None


def read_file(path: Path) -> ConfigFile:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The configuration {path} can't be read: {error}.") from error
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: {error}.") from error
    return _Reader(path, content, key_lines(text)).file()


#: Key of a container in the file → its name in the API's JSON and what it has to be.
POLICIES: dict[str, tuple[str, type]] = {
    "indexing_policy": ("indexingPolicy", dict),
    "default_ttl": ("defaultTtl", int),
    "computed_properties": ("computedProperties", list),
    "conflict_resolution_policy": ("conflictResolutionPolicy", dict),
    "geospatial_config": ("geospatialConfig", dict),
    "vector_embedding_policy": ("vectorEmbeddingPolicy", dict),
    "full_text_policy": ("fullTextPolicy", dict),
    "synthetic_key": ("syntheticKey", dict),
}
_DATABASE_KEYS = {"id", "throughput", "autoscale_max", "container", "collection"}
_CONTAINER_KEYS = {
    "id",
    "partition_key",
    "unique_keys",
    "change_feed_retention_minutes",
    "throughput",
    "autoscale_max",
    "physical_partitions",
    "fixed",
    "graph",
    "seed",
    "procedures",
    "triggers",
    "functions",
    *POLICIES,
}
_COLLECTION_KEYS = {
    "id",
    "shard_key",
    "indexes",
    "throughput",
    "autoscale_max",
    "physical_partitions",
    "seed",
}
_TABLE_KEYS = {"id", "throughput", "autoscale_max", "physical_partitions", "seed"}
#: Kind of a script → its key in a container.
SCRIPT_KEYS: Final[dict[Kind, str]] = {
    "procedure": "procedures",
    "trigger": "triggers",
    "function": "functions",
}
_SCRIPT_KEYS = {"file", "id", "text", "type", "operation"}
_TEXT_KEYS = (("id", "id"), ("body", "text"))
_KINDS = {
    str: "text",
    int: "a whole number",
    bool: "true or false",
    list: "an array",
    dict: "a table",
}


@dataclass(frozen=True, slots=True)
class _Reader:
    path: Path
    content: Mapping[str, Any]
    lines: Mapping[KeyPath, int]

    def file(self) -> ConfigFile:
        known = sections()
        settings: dict[str, dict[str, Any]] = {}
        for name, value in self.content.items():
            if name in ("database", "tables"):
                continue
            if name not in known:
                every = [*known, "database", "tables"]
                self.fail((name,), f"there is no section {name!r}; {_there_are(every)}")
            table = self.expect(value, dict, (name,))
            settings[name] = {
                key: self.setting(known[name], key, one, (name, key)) for key, one in table.items()
            }
        databases = self.expect(self.content.get("database", []), list, ("database",))
        found = tuple(self.database(one, ("database", n)) for n, one in enumerate(databases))
        self.once(found, "database", [("database", n, "id") for n in range(len(found))])
        return ConfigFile(self.path, settings, self.with_tables(found))

    def with_tables(self, databases: tuple[DeclaredDatabase, ...]) -> tuple[DeclaredDatabase, ...]:
        """`[[tables]]` are containers of the database of all tables, which may be declared too."""
        given = self.expect(self.content.get("tables", []), list, ("tables",))
        tables = tuple(self.one_table(one, ("tables", n)) for n, one in enumerate(given))
        if not tables:
            return databases
        self.once(tables, "table", [("tables", n, "id") for n in range(len(tables))])
        for number, one in enumerate(databases):
            if one.id == TABLES_DB:
                joined = replace(one, containers=(*one.containers, *tables))
                return (*databases[:number], joined, *databases[number + 1 :])
        made = DeclaredDatabase(TABLES_DB, self.place(("tables",)), containers=tables)
        return (*databases, made)

    def one_table(self, source: Any, at: KeyPath) -> DeclaredContainer:
        table = self.table(source, at, _TABLE_KEYS)
        body = table_definition(self.text(table, "id", at))
        self.check(body, at)
        return DeclaredContainer(
            body["id"],
            body,
            self.place(at),
            throughput=self.number(table, "throughput", at),
            autoscale_max=self.number(table, "autoscale_max", at),
            physical_partitions=self.number(table, "physical_partitions", at),
            seeds=self.seeds(table, at),
            api="table",
        )

    def setting(
        self, known: Mapping[str, Callable[[str], Any]], key: str, value: Any, at: KeyPath
    ) -> Any:
        if key not in known:
            self.fail(at, f"there is no setting {key!r} in [{at[0]}]; {_there_are(known)}")
        if isinstance(value, list):
            value = ",".join(self.expect(one, str, at) for one in value)
        elif isinstance(value, bool):
            value = "on" if value else "off"
        if not isinstance(value, str | int):
            self.fail(at, f"{key} is {_kind(value)}; it has to be text, a number or true or false")
        try:
            return known[key](str(value))
        except ValueError as error:
            self.fail(at, f"{key} is {value!r}; {error}")

    def database(self, source: Any, at: KeyPath) -> DeclaredDatabase:
        table = self.table(source, at, _DATABASE_KEYS)
        containers = self.expect(table.get("container", []), list, (*at, "container"))
        found = tuple(
            self.container(one, (*at, "container", n)) for n, one in enumerate(containers)
        )
        places: list[KeyPath] = [(*at, "container", n, "id") for n in range(len(found))]
        given = self.expect(table.get("collection", []), list, (*at, "collection"))
        found += tuple(self.collection(one, (*at, "collection", n)) for n, one in enumerate(given))
        places += [(*at, "collection", n, "id") for n in range(len(given))]
        self.once(found, "container", places)
        return DeclaredDatabase(
            self.text(table, "id", at),
            self.place(at),
            throughput=self.number(table, "throughput", at),
            autoscale_max=self.number(table, "autoscale_max", at),
            containers=found,
        )

    def container(self, source: Any, at: KeyPath) -> DeclaredContainer:
        table = self.table(source, at, _CONTAINER_KEYS)
        body: dict[str, Any] = {"id": self.text(table, "id", at)}
        for key, (name, kind) in POLICIES.items():
            if key in table:
                body[name] = self.expect(table[key], kind, (*at, key))
        synthetic = body.get("syntheticKey", {})
        key_paths = table.get("partition_key", synthetic.get("path"))
        fixed = self.expect(table.get("fixed", False), bool, (*at, "fixed"))
        if key_paths is not None:
            body["partitionKey"] = self.partition_key(key_paths, (*at, "partition_key"))
        elif not fixed:
            self.fail(at, 'a container needs a partition_key, like "/customerId", or fixed = true')
        if "unique_keys" in table:
            body["uniqueKeyPolicy"] = self.unique_keys(table["unique_keys"], (*at, "unique_keys"))
        minutes = self.number(table, "change_feed_retention_minutes", at)
        if minutes is not None:
            body["changeFeedPolicy"] = {"retentionDuration": minutes}
        self.check(body, at)
        graph = self.expect(table.get("graph", False), bool, (*at, "graph"))
        if graph:
            self.check_graph(body, at)
        return DeclaredContainer(
            body["id"],
            body,
            self.place(at),
            throughput=self.number(table, "throughput", at),
            autoscale_max=self.number(table, "autoscale_max", at),
            physical_partitions=self.number(table, "physical_partitions", at),
            fixed=fixed,
            seeds=self.seeds(table, at),
            scripts=self.scripts(table, at),
            api="gremlin" if graph else "nosql",
        )

    def collection(self, source: Any, at: KeyPath) -> DeclaredContainer:
        table = self.table(source, at, _COLLECTION_KEYS)
        name = self.text(table, "id", at)
        shard = table.get("shard_key")
        if shard is not None:
            self.expect(shard, str, (*at, "shard_key"))
        indexes = self.expect(table.get("indexes", []), list, (*at, "indexes"))
        try:
            from armillary.declare.collections import collection_body

            body = collection_body(name, shard, indexes)
        except ImportError:
            self.fail(at, f"a collection needs the MongoDB API: {install_hint('mongo')}")
        except BadInput as error:
            self.fail((*at, "indexes"), str(error).rstrip("."))
        self.check(body, at)
        return DeclaredContainer(
            name,
            body,
            self.place(at),
            throughput=self.number(table, "throughput", at),
            autoscale_max=self.number(table, "autoscale_max", at),
            physical_partitions=self.number(table, "physical_partitions", at),
            seeds=self.seeds(table, at),
            api="mongo",
        )

    def check(self, body: dict[str, Any], at: KeyPath) -> None:
        """The rules of the service, before anything is started."""
        try:
            check_computed(body)
            parse_container(body)
        except BadInput as error:
            self.fail(at, str(error).rstrip("."))

    def check_graph(self, body: dict[str, Any], at: KeyPath) -> None:
        try:
            graph_key(parse_container(body).partition_key)
        except BadInput as error:
            self.fail((*at, "partition_key"), str(error).rstrip("."))

    def partition_key(self, value: Any, at: KeyPath) -> dict[str, Any]:
        if isinstance(value, str):
            return {"paths": [value], "kind": "Hash", "version": 2}
        if isinstance(value, dict):
            return value
        paths = [self.expect(one, str, at) for one in self.expect(value, list, at)]
        return {"paths": paths, "kind": "MultiHash", "version": 2}

    def unique_keys(self, value: Any, at: KeyPath) -> dict[str, Any]:
        """`["/email", ["/first", "/last"]]`: each entry is one constraint."""
        keys = [
            [one] if isinstance(one, str) else [self.expect(path, str, at) for path in one]
            for one in self.expect(value, list, at)
            if isinstance(one, str) or self.expect(one, list, at)
        ]
        return {"uniqueKeys": [{"paths": paths} for paths in keys]}

    def scripts(self, table: Mapping[str, Any], at: KeyPath) -> tuple[DeclaredScript, ...]:
        """`procedures = ["transfer.js"]`: each is named by its file. A trigger is a table with
        `file`, `type` and `operation`; any may have `id` and `text` in place of a file."""
        found = []
        for kind, key in SCRIPT_KEYS.items():
            for n, one in enumerate(self.expect(table.get(key, []), list, (*at, key))):
                where = (*at, key, n)
                given = one if isinstance(one, dict) else {"file": self.expect(one, str, where)}
                for name in given:
                    if name not in _SCRIPT_KEYS:
                        self.fail(where, f"there is no key {name!r}; {_there_are(_SCRIPT_KEYS)}")
                body = self.script(given, where)
                if kind == "trigger":
                    body["triggerType"] = given.get("type", "Pre")
                    body["triggerOperation"] = given.get("operation", "All")
                try:
                    check_script(kind, body)
                except (BadInput, TooLarge) as error:
                    self.fail(where, str(error).rstrip("."))
                found.append(DeclaredScript(kind, body, self.place(where)))
        return tuple(found)

    def script(self, given: Mapping[str, Any], where: KeyPath) -> dict[str, Any]:
        """From `file`, or `id` and `text`."""
        if "text" in given:
            if "file" in given:
                self.fail(where, "a script has a file or a text, not both")
            return {name: self.text(given, key, where) for name, key in _TEXT_KEYS}
        path = self.path.parent / self.text(given, "file", where)
        if not path.is_file():
            self.fail(where, f"the script {path} is not a file")
        return {"id": given.get("id", path.stem), "body": path.read_text("utf-8")}

    def seeds(self, table: Mapping[str, Any], at: KeyPath) -> tuple[str, ...]:
        value = table.get("seed", [])
        names = [value] if isinstance(value, str) else self.expect(value, list, (*at, "seed"))
        found = []
        for name in names:
            path = self.path.parent / self.expect(name, str, (*at, "seed"))
            if not path.is_file():
                self.fail((*at, "seed"), f"there is no file {name}")
            found.append(str(path.resolve()))
        return tuple(found)

    # --- small things -------------------------------------------------------------------------

    def table(self, value: Any, at: KeyPath, known: Iterable[str]) -> dict[str, Any]:
        table: dict[str, Any] = self.expect(value, dict, at)
        for key in table:
            if key not in set(known):
                self.fail((*at, key), f"there is no key {key!r} here; {_there_are(sorted(known))}")
        return table

    def text(self, table: Mapping[str, Any], key: str, at: KeyPath) -> str:
        if key not in table:
            self.fail(at, f"it needs an {key}")
        found: str = self.expect(table[key], str, (*at, key))
        return found

    def number(self, table: Mapping[str, Any], key: str, at: KeyPath) -> int | None:
        if key not in table:
            return None
        found: int = self.expect(table[key], int, (*at, key))
        return found

    def expect(self, value: Any, kind: type, at: KeyPath) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            self.fail(at, f"{_name(at)} is {_kind(value)}; it has to be {_KINDS[kind]}")
        return value

    def once(
        self,
        found: Iterable[DeclaredDatabase | DeclaredContainer],
        what: str,
        places: list[KeyPath],
    ) -> None:
        seen: set[str] = set()
        for one, at in zip(found, places, strict=True):
            if one.id in seen:
                self.fail(at, f"the {what} {one.id!r} is declared twice")
            seen.add(one.id)

    def place(self, at: KeyPath) -> Place:
        return Place(str(self.path), line_of(self.lines, at))

    def fail(self, at: KeyPath, text: str) -> NoReturn:
        raise BadInput(f"{self.place(at)}: {text}.")


def _name(at: KeyPath) -> str:
    return str(next((part for part in reversed(at) if isinstance(part, str)), ""))


def _kind(value: Any) -> str:
    return next(
        (text for kind, text in _KINDS.items() if type(value) is kind), "a " + type(value).__name__
    )


def _there_are(names: Iterable[str]) -> str:
    return "there are: " + ", ".join(names)
