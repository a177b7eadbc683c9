"""The row of a unique key: a digest over its values in full, a missing one counting as null."""

from __future__ import annotations

from hashlib import blake2b

from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.models import ValueModel
from armillary.encoding.paths import Path, extract
from armillary.values import JSON, UNDEFINED


def unique_key(
    number: int, paths: tuple[Path, ...], item: dict[str, JSON], model: ValueModel = JSON_MODEL
) -> bytes:
    digest = blake2b(digest_size=16)
    for path in paths:
        value = extract(item, path)
        digest.update(model.full_term(None if value is UNDEFINED else value))
    return bytes((number,)) + digest.digest()
