"""The scripts of one container, in process: `container.scripts`.

scripts.put_procedure("transfer", Path("transfer.js"))
scripts.run("transfer", "ada", "from", "to", 12.5).value
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import orjson

from armillary.encoding.partition_key import KeyValues, coerce, key_of
from armillary.errors import BadInput, NotFound, TooLarge
from armillary.limits import SCRIPT_TEXT_BYTES_MAX
from armillary.scripts.lazy import LazyRuntime
from armillary.store.catalog.resources import ResourceRecord, ResourceStore
from armillary.store.items.containers import ContainerStore
from armillary.store.items.preparation import Operation
from armillary.store.items.requests import Done
from armillary.values import JSON

Kind: TypeAlias = Literal["procedure", "trigger", "function"]
RESOURCES: Final[Mapping[Kind, str]] = {
    "procedure": "sproc",
    "trigger": "trigger",
    "function": "udf",
}
TRIGGER_TYPES: Final = ("Pre", "Post")
TRIGGER_OPERATIONS: Final = ("All", "Create", "Update", "Delete", "Replace", "Upsert")


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """What a procedure came to."""

    value: JSON
    """The response body."""
    log: str
    charge_ru: float
    changes: tuple[tuple[str, str], ...] = ()
    """What it wrote: (created, replaced or deleted; id)."""


class Scripts:
    def __init__(self, store: ContainerStore, runtime: LazyRuntime) -> None:
        self._store = store
        self._runtime = runtime

    # --- keeping --------------------------------------------------------------------------------

    def put_procedure(self, id: str, text: str | Path) -> None:
        """Create it, or replace the one of that name. The text is compiled when it runs."""
        self.put("procedure", {"id": id, "body": text_of(text)})

    def put_function(self, id: str, text: str | Path) -> None:
        """For queries: `udf.id(…)`."""
        self.put("function", {"id": id, "body": text_of(text)})

    def put_trigger(
        self, id: str, text: str | Path, *, type: str = "Pre", operation: str = "All"
    ) -> None:
        """`type`: Pre or Post. `operation`: All, Create, Replace, Update, Upsert or Delete."""
        body: dict[str, JSON] = {"id": id, "body": text_of(text)}
        body |= {"triggerType": type, "triggerOperation": operation}
        self.put("trigger", body)

    def put(self, kind: Kind, body: dict[str, JSON]) -> None:
        """The JSON of a script as the API has it."""
        check_script(kind, body)
        store = self._of(kind)
        found = [one for one in store.list() if one.id == body["id"]]
        if not found:
            store.create(body)
        elif found[0].body != body:
            store.replace(found[0].id, body)

    def list(self, kind: Kind) -> list[dict[str, JSON]]:
        return [one.body for one in self._of(kind).list()]

    def read(self, kind: Kind, id: str) -> dict[str, JSON]:
        return self._of(kind).read(id).body

    def delete(self, kind: Kind, id: str) -> None:
        self._of(kind).delete(id)

    # --- running --------------------------------------------------------------------------------

    def run(
        self, id: str, partition_key: Any, *arguments: JSON, logging: bool = False
    ) -> ScriptResult:
        """Run a procedure in one logical partition and wait for it. ScriptFailed when it throws;
        then nothing it did has happened."""
        return self._run(self._of("procedure").read(id), partition_key, arguments, logging)

    def run_text(
        self, text: str | Path, partition_key: Any, *arguments: JSON, logging: bool = False
    ) -> ScriptResult:
        """The same for a procedure that is not kept."""
        body = {"id": "procedure", "body": text_of(text)}
        script = ResourceRecord("sproc", "", "procedure", "", body, "", 0, 0)
        return self._run(script, partition_key, arguments, logging)

    def _run(
        self, script: ResourceRecord, key: Any, arguments: tuple[JSON, ...], logging: bool
    ) -> ScriptResult:
        from armillary.scripts.executing import execute_procedure

        executed = execute_procedure(
            self._runtime.get(),
            self._store,
            script,
            coerce(key),
            orjson.dumps(arguments),
            logging=logging,
        ).result()
        return ScriptResult(
            orjson.loads(executed.response),
            executed.log,
            executed.charge_ru,
            tuple(executed.changes),
        )

    def write(
        self,
        operation: Operation,
        key: KeyValues | None,
        pre_trigger: str | None,
        post_trigger: str | None,
    ) -> tuple[Done, bytes]:
        """A write with its triggers: what was done, and the body that they answer with."""
        from armillary.encoding.documents import parse_body
        from armillary.scripts.executing import Triggers, execute_write

        if key is None:
            if operation.body is None:
                raise BadInput("PartitionKey value must be supplied for this operation.")
            item = parse_body(operation.body).item
            key = key_of(item, self._store.state.definition.partition_key)
        triggers = Triggers(self._trigger(pre_trigger), self._trigger(post_trigger))
        executed = execute_write(
            self._runtime.get(), self._store, operation, key, triggers
        ).result()
        assert executed.done is not None
        return executed.done, executed.response

    def _trigger(self, id: str | None) -> ResourceRecord | None:
        if id is None:
            return None
        try:
            return self._of("trigger").read(id)
        except NotFound as error:
            raise NotFound(f"There is no trigger '{id}'.") from error

    def _of(self, kind: Kind) -> ResourceStore:
        if kind not in RESOURCES:
            raise BadInput(f"A script is one of {', '.join(RESOURCES)}, not {kind!r}.")
        return ResourceStore(self._store.engine, RESOURCES[kind], self._store.state.record.rid)


def text_of(source: str | Path) -> str:
    return source.read_text("utf-8") if isinstance(source, Path) else source


def check_script(kind: Kind, body: Mapping[str, JSON]) -> None:
    for name in ("id", "body"):
        if not isinstance(body.get(name), str):
            raise BadInput(f"A {kind} needs '{name}', a text.")
    if len(str(body["body"]).encode("utf-8", "surrogatepass")) > SCRIPT_TEXT_BYTES_MAX:
        raise TooLarge(f"A script has at most {SCRIPT_TEXT_BYTES_MAX:,} bytes.")
    if kind != "trigger":
        return
    for name, allowed in (
        ("triggerType", TRIGGER_TYPES),
        ("triggerOperation", TRIGGER_OPERATIONS),
    ):
        if str(body.get(name)).lower() not in map(str.lower, allowed):
            raise BadInput(f"The property '{name}' must be one of {', '.join(allowed)}.")
