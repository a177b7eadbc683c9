"""Cosmos DB for Table and Azure Table Storage: one protocol, two sets of rules. Facts: table 11.

`cosmos` is the default. `storage` is for programs that were written against Storage or Azurite.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from armillary import limits
from armillary.api.table.problems import refused
from armillary.encoding.edm.values import TICKS_MIN_STORAGE

Name: TypeAlias = Literal["cosmos", "storage"]

FORBIDDEN_NAME: Final = frozenset("/\\#?")
RESERVED_NAMES: Final = frozenset({"Tables", "$batch", "$settings"})
_KEY_REFUSED: Final = re.compile("[/\\\\#?\u0000-\u001f\u007f-\u009f]")
KEY_HINT: Final = "PartitionKey and RowKey can't contain / \\ # ? and control characters."
_STORAGE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")


@dataclass(frozen=True, slots=True)
class Flavour:
    name: Name
    is_storage: bool
    row_key_bytes_max: int
    partition_key_bytes_max: int
    entity_bytes_max: int
    batch_bytes_max: int
    properties_max: int
    ticks_min: int
    content_type: str
    """What follows the metadata level in a Content-Type goes before it in this form."""

    def content_type_of(self, level: str) -> str:
        return self.content_type.format(level)

    # --- names and keys -------------------------------------------------------------------------

    def check_table_name(self, name: object) -> str:
        if not isinstance(name, str):
            raise refused("input", hint="TableName has to be a string.")
        if self.is_storage:
            if not 3 <= len(name) <= 63:
                raise refused("table name length")
            if _STORAGE_NAME.fullmatch(name) is None or name.lower() == "tables":
                raise refused("table name character", name)
            return name
        if not name or len(name) >= limits.TABLE_NAME_CHARACTERS_END:
            raise refused("table name length")
        for character in name:
            if character in FORBIDDEN_NAME:
                raise refused("table name character", character)
        if name.endswith(" "):
            raise refused("table name space")
        if name in RESERVED_NAMES:
            raise refused("input", hint=f"The name {name!r} means something else in a path.")
        return name

    def check_keys(self, partition_key: object, row_key: object) -> tuple[str, str]:
        """Both keys of an entity that is written."""
        if not isinstance(partition_key, str) or not isinstance(row_key, str):
            raise refused("input", hint="PartitionKey and RowKey are strings.")
        if not self.is_storage and not (partition_key and row_key):
            raise refused("keys empty")
        for key, most in (
            (partition_key, self.partition_key_bytes_max),
            (row_key, self.row_key_bytes_max),
        ):
            if _KEY_REFUSED.search(key) is not None:
                raise refused("key characters", hint=KEY_HINT)
            if len(key) * 4 > most and self._key_bytes(key) > most:
                raise refused("key length", f"{most} bytes")
        return partition_key, row_key

    def _key_bytes(self, key: str) -> int:
        try:
            return len(key.encode("utf-16-le" if self.is_storage else "utf-8"))
        except UnicodeEncodeError as error:  # half of a surrogate pair
            raise refused("key characters", hint=KEY_HINT) from error


COSMOS: Final = Flavour(
    name="cosmos",
    is_storage=False,
    row_key_bytes_max=limits.TABLE_ROW_KEY_BYTES_MAX,
    partition_key_bytes_max=limits.PARTITION_KEY_BYTES_MAX,
    entity_bytes_max=limits.ITEM_BYTES_MAX,
    batch_bytes_max=limits.BATCH_BYTES_MAX,
    properties_max=limits.TABLE_PROPERTIES_MAX,
    ticks_min=0,
    content_type="application/json; odata={0}",
)
STORAGE: Final = Flavour(
    name="storage",
    is_storage=True,
    row_key_bytes_max=limits.STORAGE_KEY_BYTES_MAX,
    partition_key_bytes_max=limits.STORAGE_KEY_BYTES_MAX,
    entity_bytes_max=limits.STORAGE_ENTITY_BYTES_MAX,
    batch_bytes_max=limits.BATCH_BYTES_MAX,
    properties_max=limits.TABLE_PROPERTIES_MAX,
    ticks_min=TICKS_MIN_STORAGE,
    content_type="application/json;odata={0};streaming=true;charset=utf-8",
)
FLAVOURS: Final = {"cosmos": COSMOS, "storage": STORAGE}
