"""The policies of a container beside its ranges of paths: vectors, full text, space, conflicts.

Called when a container is created or replaced, never when one is loaded: what was once accepted
stays readable. Texts are those that the SDKs' own tests ask for (azure-cosmos test_vector_policy,
test_full_text_policy; the Java FullTextIndexTest); limits are nosql-query 7.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from armillary.encoding.paths import parse_path
from armillary.errors import BadInput
from armillary.limits import (
    FLAT_VECTOR_DIMENSIONS_MAX,
    QUANTIZATION_BYTES_MAX,
    VECTOR_DIMENSIONS_MAX,
    VECTOR_SEARCH_LIST_MAX,
    VECTOR_SEARCH_LIST_MIN,
    VECTOR_SHARD_PATHS_MAX,
)
from armillary.values import JSON

LANGUAGES: Final = ("en-US", "de-DE", "es-ES", "fr-FR", "it-IT", "pt-BR", "pt-PT")
#: Windows' numbers of some of them, which the service takes as well.
NUMBERED_LANGUAGES: Final = {
    "1033": "en-US",
    "1031": "de-DE",
    "3082": "es-ES",
    "1036": "fr-FR",
}
DATA_TYPES: Final = ("float32", "float16", "int8", "uint8")
DISTANCES: Final = ("cosine", "dotproduct", "euclidean")
VECTOR_INDEXES: Final = ("flat", "quantizedflat", "diskann")
QUANTIZERS: Final = ("product", "spherical")
GEOSPATIAL: Final = ("geography", "geometry")
CONFLICT_MODES: Final = ("lastwriterwins", "custom")
AUTH_TYPES: Final = ("apikey", "entra")
INVALID: Final = "One of the specified inputs is invalid"
#: Kept for life. Who does not speak of one on a replace keeps what there is.
FIXED: Final = ("conflictResolutionPolicy",)


def check_policies(document: Mapping[str, JSON]) -> None:
    """Raises BadInput when the policies of a container's definition do not fit together."""
    for name, check in _CHECKS.items():
        if document.get(name) is not None:
            check(_object(document[name], name))
    indexing = _object(document.get("indexingPolicy") or {}, "indexingPolicy")
    embeddings = _by_path(document.get("vectorEmbeddingPolicy"), "vectorEmbeddings")
    for index in _list(indexing, "vectorIndexes"):
        _check_vector_index(_object(index, "vectorIndexes"), embeddings)
    texts = _by_path(document.get("fullTextPolicy"), "fullTextPaths")
    for index in _list(indexing, "fullTextIndexes"):
        path = _object(index, "fullTextIndexes").get("path")
        if path not in texts:
            raise BadInput(
                f"The Full Text Indexing Policy's path::{path} not matching in Full Text Policy's "
                "path."
            )
    check_box = _check_box if is_geometry(document) else _refuse_box
    for index in _list(indexing, "spatialIndexes"):
        check_box(_object(index, "spatialIndexes"))


def inherited(body: JSON, old: Mapping[str, JSON]) -> JSON:
    """A replacement that leaves out what can't change means what there is."""
    if not isinstance(body, dict):
        return body
    names = (*FIXED, "syntheticKey")
    kept = {name: old[name] for name in names if body.get(name) is None and name in old}
    return {**body, **kept}


def check_policy_replacement(old: Mapping[str, JSON], new: Mapping[str, JSON]) -> None:
    for name in FIXED:
        if old.get(name) != new.get(name):
            raise BadInput(f"The {name} of a container can't be changed after it was created.")
    before = _by_path(old.get("vectorEmbeddingPolicy"), "vectorEmbeddings")
    after = _by_path(new.get("vectorEmbeddingPolicy"), "vectorEmbeddings")
    if any(after.get(path) != entry for path, entry in before.items()):
        raise BadInput(
            "Paths in existing embedding policy cannot be modified in Collection Replace"
        )
    indexes = _by_path(old.get("indexingPolicy"), "vectorIndexes")
    wanted = _by_path(new.get("indexingPolicy"), "vectorIndexes")
    if any(wanted[path] != indexes[path] for path in indexes.keys() & wanted.keys()):
        raise BadInput(
            "Paths in existing vector indexing policy cannot be modified in Collection Replace"
        )


def is_geometry(document: Mapping[str, JSON]) -> bool:
    """Whether shapes lie in a plane rather than on the earth."""
    config = document.get("geospatialConfig")
    kind = config.get("type") if isinstance(config, dict) else None
    return isinstance(kind, str) and kind.lower() == "geometry"


def languages(document: Mapping[str, JSON]) -> tuple[str, dict[str, str]]:
    """(the language of full text, the languages of paths that have their own)."""
    policy = document.get("fullTextPolicy")
    given = policy if isinstance(policy, dict) else {}
    default = _language(given.get("defaultLanguage")) or "en-US"
    paths = _by_path(given, "fullTextPaths")
    return default, {
        path: _language(entry.get("language")) or default for path, entry in paths.items()
    }


def _language(given: JSON) -> str:
    return NUMBERED_LANGUAGES.get(str(given), "" if given is None else str(given))


# --- vectors --------------------------------------------------------------------------------------


def _check_embeddings(policy: dict[str, JSON]) -> None:
    entries = _list(policy, "vectorEmbeddings")
    for entry in entries:
        _check_embedding(_object(entry, "vectorEmbeddings"))
    if len(_by_path(policy, "vectorEmbeddings")) < len(entries):
        raise BadInput("The Vector Embedding Policy has a Path more than once.")


def _check_embedding(entry: dict[str, JSON]) -> None:
    path = entry.get("path")
    if not _is_path(path):
        raise BadInput(
            f"The Vector Embedding Policy has an invalid Path:{path}. Specify the correct path for "
            "vector properties of your documents."
        )
    for name, word, allowed in (
        ("dataType", "DataType", DATA_TYPES),
        ("distanceFunction", "DistanceFunction", DISTANCES),
    ):
        if not _is_one_of(entry.get(name), allowed):
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
        _check_source(_object(entry["embeddingSource"], "embeddingSource"))


def _check_source(source: dict[str, JSON]) -> None:
    if not _is_one_of(source.get("authType"), AUTH_TYPES):
        raise BadInput(
            "The auth type provided in the embedding source of vector policy is invalid."
        )
    paths = _list(source, "sourcePaths")
    if not paths or not all(map(_is_path, paths)):
        raise BadInput("The embedding source of vector policy needs 'sourcePaths'.")
    for name in ("endpoint", "deploymentName"):
        if not isinstance(source.get(name), str) or not source[name]:
            raise BadInput(f"The embedding source of vector policy needs '{name}'.")


def _check_vector_index(entry: dict[str, JSON], embeddings: dict[Any, dict[str, JSON]]) -> None:
    path, kind = entry.get("path"), entry.get("type")
    if not _is_one_of(kind, VECTOR_INDEXES):
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
    if quantizer is not None and not _is_one_of(quantizer, QUANTIZERS):
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
        if not _is_path(path):
            raise BadInput(f"The Vector Indexing Policy has an invalid Shard Path: {path}.")


# --- the others -----------------------------------------------------------------------------------


def _check_full_text(policy: dict[str, JSON]) -> None:
    _check_language(policy.get("defaultLanguage"))
    entries = _list(policy, "fullTextPaths")
    for entry in entries:
        given = _object(entry, "fullTextPaths")
        if not _is_path(given.get("path")):
            raise BadInput(f"The Full Text Policy contains an invalid Path: {given.get('path')}")
        _check_language(given.get("language"))
    if len(_by_path(policy, "fullTextPaths")) < len(entries):
        raise BadInput("The Full Text Policy contains a Path more than once.")


def _check_language(language: JSON) -> None:
    known = language is None or language in LANGUAGES or str(language) in NUMBERED_LANGUAGES
    if not known:
        names = ", ".join(f'"{name}"' for name in LANGUAGES)
        raise BadInput(
            f"The Full Text Policy contains an unsupported language {language}. Supported "
            f"languages are: {names}."
        )


def _check_geospatial(config: dict[str, JSON]) -> None:
    if not _is_one_of(config.get("type"), GEOSPATIAL):
        raise BadInput(
            f"The type {config.get('type')!r} of the geospatialConfig is invalid; allowed are "
            "'Geography' and 'Geometry'."
        )


def _refuse_box(index: dict[str, JSON]) -> None:
    """On the earth there is nothing around it."""
    if index.get("boundingBox") is not None:
        raise BadInput(
            f"The spatial index on '{index.get('path')}' has a boundingBox, which only a "
            "geospatialConfig of type Geometry takes."
        )


def _check_box(index: dict[str, JSON]) -> None:
    """Of a spatial index in the plane (nosql-query 7.1)."""
    box = index.get("boundingBox")
    given = box if isinstance(box, dict) else {}
    sides = [given.get(name) for name in ("xmin", "ymin", "xmax", "ymax")]
    if not all(type(side) in (int, float) for side in sides):
        raise BadInput(
            f"The spatial index on '{index.get('path')}' needs a boundingBox with the numbers "
            "xmin, ymin, xmax and ymax, because the geospatialConfig is Geometry."
        )
    if given["xmin"] >= given["xmax"] or given["ymin"] >= given["ymax"]:
        raise BadInput(f"The boundingBox of the spatial index on '{index.get('path')}' is empty.")


def _check_conflicts(policy: dict[str, JSON]) -> None:
    mode = policy.get("mode")
    if mode is not None and not _is_one_of(mode, CONFLICT_MODES):
        raise BadInput(
            f"The mode {mode!r} of the conflictResolutionPolicy is invalid; allowed are "
            "'LastWriterWins' and 'Custom'."
        )
    path = policy.get("conflictResolutionPath")
    if path and not _is_path(path):
        raise BadInput(f"The conflictResolutionPath {path!r} is no path such as '/_ts'.")
    procedure = policy.get("conflictResolutionProcedure")
    if procedure is not None and not isinstance(procedure, str):
        raise BadInput("The conflictResolutionProcedure must be a text.")


_CHECKS: Final[dict[str, Callable[[dict[str, JSON]], None]]] = {
    "vectorEmbeddingPolicy": _check_embeddings,
    "fullTextPolicy": _check_full_text,
    "geospatialConfig": _check_geospatial,
    "conflictResolutionPolicy": _check_conflicts,
}


# --- form -----------------------------------------------------------------------------------------


def _is_one_of(value: JSON, allowed: tuple[str, ...]) -> bool:
    return isinstance(value, str) and value.lower() in allowed


def _is_path(value: JSON) -> bool:
    if not isinstance(value, str) or value.endswith(("/", "*", "?")):
        return False
    try:
        return bool(parse_path(value))
    except BadInput:
        return False


def _by_path(policy: JSON, name: str) -> dict[Any, dict[str, JSON]]:
    """Entries of a policy by their paths; those without form are for the checks to find."""
    entries = policy.get(name) if isinstance(policy, dict) else None
    found = [entry for entry in entries or () if isinstance(entry, dict)]
    return {path: entry for entry in found if isinstance(path := entry.get("path"), str)}


def _object(source: JSON, what: str) -> dict[str, JSON]:
    if not isinstance(source, dict):
        raise BadInput(f"{INVALID}: {what} must be a JSON object.")
    return source


def _list(given: dict[str, JSON], name: str) -> list[JSON]:
    value = given.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadInput(f"{INVALID}: {name} must be a list.")
    return value
