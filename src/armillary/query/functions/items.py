"""Functions of a whole item or object (reference 6.2): DOCUMENTID, HASH, ObjectToArray."""

import base64
import binascii
import json

import mmh3

from armillary.query.functions.base import Function, integer
from armillary.values import JSON, UNDEFINED

_ITEM_RID_BYTES = 16


def document_id(item: JSON) -> JSON:
    """The ordinal inside `_rid` (nosql-rest 2.3): 16 bytes, the last 8 little-endian."""
    rid = item.get("_rid") if type(item) is dict else None
    if type(rid) is not str:
        return UNDEFINED
    try:
        raw = base64.b64decode(rid.replace("-", "/"), validate=True)
    except (binascii.Error, ValueError):
        return UNDEFINED
    if len(raw) != _ITEM_RID_BYTES:
        return UNDEFINED
    return int.from_bytes(raw[8:], "little")


def object_to_array(value: JSON, name: JSON = "k", content: JSON = "v") -> JSON:
    if type(value) is not dict or type(name) is not str or type(content) is not str:
        return UNDEFINED
    return [{name: member, content: inner} for member, inner in value.items()]


def hash_of(value: JSON, modulus: JSON = 2**32) -> JSON:
    """A number that is the same for equal values. The original's hash is not documented
    (unverified); ours is MurmurHash3 of the canonical JSON text.
    """
    divisor = integer(modulus)
    if value is UNDEFINED or divisor is None or divisor <= 0:
        return UNDEFINED
    text = json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"))
    return mmh3.hash(text, signed=False) % divisor


def _canonical(value: JSON) -> JSON:
    """1 and 1.0 are one value and must hash alike."""
    if type(value) is list:
        return [_canonical(each) for each in value]
    if type(value) is dict:
        return {name: _canonical(each) for name, each in value.items()}
    whole = integer(value)
    return value if whole is None else whole


FUNCTIONS = (
    Function("DOCUMENTID", 1, 1, document_id),
    Function("HASH", 1, 2, hash_of),
    Function("ObjectToArray", 1, 3, object_to_array),
)
