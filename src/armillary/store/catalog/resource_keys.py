"""Where users, permissions, scripts and client encryption keys lie in the catalog, and their end.

    resource  kind, rid of the owner, id → ResourceRecord     (store/catalog/resources.py)
    by rid    rid                        → the key of the record

The rid of everything in a database begins with the database's, so what goes with an owner is found
by a prefix.
"""

from typing import Final

import msgspec

from armillary.encoding.rids import rid_bytes
from armillary.engine.base import Writer
from armillary.store.rows.layout import after
from armillary.store.rows.secondary import id_part

RESOURCE: Final = b"\x61"
RESOURCE_BY_RID: Final = b"\x71"
RESOURCE_COUNT: Final = b"\x81"

#: Kind → its byte in the key. A released one is never used for something else.
KINDS: Final[dict[str, bytes]] = {
    "user": b"\x01",
    "permission": b"\x02",
    "sproc": b"\x03",
    "trigger": b"\x04",
    "udf": b"\x05",
    "clientencryptionkey": b"\x06",
}


def owner_prefix(kind: str, owner_rid: str) -> bytes:
    return RESOURCE + KINDS[kind] + rid_bytes(owner_rid)


def resource_key(kind: str, owner_rid: str, resource_id: str) -> bytes:
    return owner_prefix(kind, owner_rid) + id_part(resource_id)


def remove_resources(tx: Writer, owner_rid: str) -> None:
    """Everything below an owner that goes: a database, a container, a user."""
    for kind in KINDS:
        prefix = owner_prefix(kind, owner_rid)
        for key, row in list(tx.scan(prefix, after(prefix))):
            tx.delete(key)
            tx.delete(RESOURCE_BY_RID + rid_bytes(msgspec.json.decode(row)["rid"]))
