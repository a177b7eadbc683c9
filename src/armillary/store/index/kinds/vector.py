"""Vectors: their embedding policy, their indexes, and the float32 rows that are compared.

Texts are those that the SDKs' own tests ask for (azure-cosmos test_vector_policy); limits are
nosql-query 7.1.
"""

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from armillary.encoding.paths import extract, parse_path
from armillary.errors import BadInput
from armillary.limits import (
    FLAT_VECTOR_DIMENSIONS_MAX,
    QUANTIZATION_BYTES_MAX,
    VECTOR_DIMENSIONS_MAX,
    VECTOR_SEARCH_LIST_MAX,
    VECTOR_SEARCH_LIST_MIN,
    VECTOR_SHARD_PATHS_MAX,
)
from armillary.store.index.kinds.base import Kind, Row, row_prefix
from armillary.store.index.kinds.forms import (
    INVALID,
    a_list,
    an_object,
    by_path,
    check_property,
    each,
    is_one_of,
    is_path,
    names,
)
from armillary.store.index.paths import Path
from armillary.store.rows import layout
from armillary.values import JSON

DATA_TYPES: Final = ("float32", "float16", "int8", "uint8")
DISTANCES: Final = ("cosine", "dotproduct", "euclidean")
VECTOR_INDEXES: Final = ("flat", "quantizedflat", "diskann")
QUANTIZERS: Final = ("product", "spherical")
AUTH_TYPES: Final = ("apikey", "entra")
NO_VECTOR, VECTOR = b"\x00", b"\x01"
FLOAT_MAX: Final = 3.4e38
FLOAT_MIN: Final = 1.2e-38  # below, a float32 loses digits


@dataclass(frozen=True, slots=True)
class VectorIndex:
    path: tuple[str, ...]
    dimensions: int

    @property
    def prefix(self) -> bytes:
        return layout.VX

    def covers(self, path: Path) -> bool:
        return path == self.path

    def rows(self, item: dict[str, JSON]) -> Iterator[Row]:
        vector = extract(item, self.path)
        if type(vector) is not list or not all(type(each) in (int, float) for each in vector):
            return
        data = NO_VECTOR
        if len(vector) == self.dimensions and all(map(_fits, vector)):
            data = VECTOR + struct.pack(f"<{self.dimensions}f", *vector)
        yield row_prefix(layout.VX, self.path), data


def _fits(number: float) -> bool:
    size = abs(number)
    return size == 0 or (FLOAT_MIN <= size <= FLOAT_MAX and math.isfinite(size))


def _describe(document: Mapping[str, Any]) -> dict[str, JSON]:
    embeddings = (document.get("vectorEmbeddingPolicy") or {}).get("vectorEmbeddings") or ()
    return {"dimensions": {each["path"]: each["dimensions"] for each in embeddings}}


def _told(document: Mapping[str, Any]) -> dict[str, Any]:
    """Paths by what their vectors are compared by."""
    policy = document.get("vectorEmbeddingPolicy")
    embeddings = policy.get("vectorEmbeddings") if isinstance(policy, dict) else None
    return {
        "metrics": {
            parse_path(each["path"]): str(each.get("distanceFunction", "cosine")).lower()
            for each in embeddings or ()
        }
    }


def _compile(entry: Mapping[str, Any], known: Mapping[str, Any]) -> VectorIndex | None:
    dimensions = known["dimensions"].get(entry["path"])
    return None if dimensions is None else VectorIndex(names(entry["path"]), dimensions)


# --- policies -------------------------------------------------------------------------------------


def _check_policies(document: Mapping[str, Any]) -> None:
    policy = document.get("vectorEmbeddingPolicy")
    if policy is not None:
        _check_embeddings(an_object(policy, "vectorEmbeddingPolicy"))
    embeddings = by_path(policy, "vectorEmbeddings")
    for index in a_list(document.get("indexingPolicy") or {}, "vectorIndexes"):
        _check_vector_index(an_object(index, "vectorIndexes"), embeddings)


def _check_replacement(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    before = by_path(old.get("vectorEmbeddingPolicy"), "vectorEmbeddings")
    after = by_path(new.get("vectorEmbeddingPolicy"), "vectorEmbeddings")
    if any(after.get(path) != entry for path, entry in before.items()):
        raise BadInput(
            "Paths in existing embedding policy cannot be modified in Collection Replace"
        )
    indexes = by_path(old.get("indexingPolicy"), "vectorIndexes")
    wanted = by_path(new.get("indexingPolicy"), "vectorIndexes")
    if any(wanted[path] != indexes[path] for path in indexes.keys() & wanted.keys()):
        raise BadInput(
            "Paths in existing vector indexing policy cannot be modified in Collection Replace"
        )


def _check_embeddings(policy: dict[str, JSON]) -> None:
    entries = a_list(policy, "vectorEmbeddings")
    for entry in entries:
        _check_embedding(an_object(entry, "vectorEmbeddings"))
    if len(by_path(policy, "vectorEmbeddings")) < len(entries):
        raise BadInput("The Vector Embedding Policy has a Path more than once.")


def _check_embedding(entry: dict[str, JSON]) -> None:
    path = entry.get("path")
    if not is_path(path):
        raise BadInput(
            f"The Vector Embedding Policy has an invalid Path:{path}. Specify the correct path for "
            "vector properties of your documents."
        )
    for name, word, allowed in (
        ("dataType", "DataType", DATA_TYPES),
        ("distanceFunction", "DistanceFunction", DISTANCES),
    ):
        if not is_one_of(entry.get(name), allowed):
            raise BadInput(
                f"The Vector Embedding Policy has an invalid {word}:{entry.get(name)}. "
                f"Supported are: {', '.join(allowed)}."
            )
    dimensions = entry.get("dimensions")
    if type(dimensions) is not int or dimensions < 1:
        raise BadInput(
            f"The Vector Embedding Policy has Dimensions:{dimensions} which is less than the "
            "minimum supported value 1."
        )
    if dimensions > VECTOR_DIMENSIONS_MAX:
        raise BadInput(
            f"The Vector Embedding Policy has Dimensions:{dimensions} which is more than the "
            f"maximum supported value {VECTOR_DIMENSIONS_MAX}."
        )
    if entry.get("embeddingSource") is not None:
        _check_source(an_object(entry["embeddingSource"], "embeddingSource"))


def _check_source(source: dict[str, JSON]) -> None:
    if not is_one_of(source.get("authType"), AUTH_TYPES):
        raise BadInput(
            "The auth type provided in the embedding source of vector policy is invalid."
        )
    paths = a_list(source, "sourcePaths")
    if not paths or not all(map(is_path, paths)):
        raise BadInput("The embedding source of vector policy needs 'sourcePaths'.")
    for name in ("endpoint", "deploymentName"):
        if not isinstance(source.get(name), str) or not source[name]:
            raise BadInput(f"The embedding source of vector policy needs '{name}'.")


def _check_vector_index(entry: dict[str, JSON], embeddings: dict[Any, dict[str, JSON]]) -> None:
    path, kind = entry.get("path"), entry.get("type")
    if not is_one_of(kind, VECTOR_INDEXES):
        raise BadInput(f"The Vector Indexing Policy's Index Type::{kind} is invalid.")
    if path not in embeddings:
        raise BadInput(
            f"The Vector Indexing Policy's path::{path} not matching in Embedding's path."
        )
    dimensions = embeddings[path]["dimensions"]
    if str(kind).lower() == "flat" and dimensions > FLAT_VECTOR_DIMENSIONS_MAX:
        raise BadInput(
            f"The Vector Embedding Policy has Dimensions:{dimensions} which is more than the "
            f"maximum supported value {FLAT_VECTOR_DIMENSIONS_MAX} for the flat index."
        )
    quantizer = entry.get("quantizerType")
    if quantizer is not None and not is_one_of(quantizer, QUANTIZERS):
        raise BadInput(f"The Vector Indexing Policy's Quantizer Type::{quantizer} is invalid.")
    bytes_max = min(dimensions, QUANTIZATION_BYTES_MAX)
    _check_number(entry, "quantizationByteSize", 1, bytes_max)
    _check_number(entry, "indexingSearchListSize", VECTOR_SEARCH_LIST_MIN, VECTOR_SEARCH_LIST_MAX)
    _check_shard_key(entry.get("vectorIndexShardKey"))


def _check_number(entry: dict[str, JSON], name: str, least: int, most: int) -> None:
    value = entry.get(name)
    if value is not None and (type(value) is not int or not least <= value <= most):
        raise BadInput(
            f"The Vector Indexing Policy parameter {name[0].upper()}{name[1:]} value :: {value} is "
            f"out of range. The allowed range is between {least} and {most}."
        )


def _check_shard_key(paths: JSON) -> None:
    if paths is None:
        return
    if not isinstance(paths, list):
        raise BadInput(INVALID)
    if len(paths) > VECTOR_SHARD_PATHS_MAX:
        raise BadInput(
            f"The number of shard paths defined in the Vector Indexing Policy: {len(paths)} "
            f"exceeds the maximum: {VECTOR_SHARD_PATHS_MAX}."
        )
    for path in paths:
        if not is_path(path):
            raise BadInput(f"The Vector Indexing Policy has an invalid Shard Path: {path}.")


KIND: Final = Kind(
    name="vectorIndexes",
    prefix=layout.VX,
    parse=each("vectorIndexes", check_property),
    describe=_describe,
    compile=_compile,
    told=_told,
    check_policies=_check_policies,
    check_replacement=_check_replacement,
)
