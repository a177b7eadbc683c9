"""Vector, full-text, spatial and conflict policies: the service's refusals, and what stays."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.accounts import World

from armillary.errors import BadInput
from armillary.store.catalog.policies import check_policies

EMBEDDING = {
    "path": "/v",
    "dataType": "float32",
    "dimensions": 256,
    "distanceFunction": "euclidean",
}
SOURCE = {
    "sourcePaths": ["/title"],
    "deploymentName": "d",
    "endpoint": "https://example.com",
    "authType": "ApiKey",
}
TEXT = {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/t", "language": "de-DE"}]}


def embeddings(**changes: Any) -> dict[str, Any]:
    return {"vectorEmbeddings": [{**EMBEDDING, **changes}]}


def vector(index: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A definition with one vector index; `changes` are to its embedding."""
    return {
        "vectorEmbeddingPolicy": embeddings(**changes),
        "indexingPolicy": {"vectorIndexes": [{"path": "/v", **index}]},
    }


def spatial(**entry: Any) -> dict[str, Any]:
    return {
        "geospatialConfig": {"type": "Geometry"},
        "indexingPolicy": {"spatialIndexes": [{"path": "/p/?", **entry}]},
    }


BOX = {"xmin": 0, "ymin": 0, "xmax": 10, "ymax": 10}


@pytest.mark.parametrize(
    "document",
    [
        {},
        vector({"type": "flat"}),
        vector({"type": "quantizedFlat", "quantizerType": "product", "quantizationByteSize": 256}),
        vector({"type": "diskANN", "indexingSearchListSize": 25, "vectorIndexShardKey": ["/a/b"]}),
        {"vectorEmbeddingPolicy": embeddings(embeddingSource=SOURCE)},
        {"fullTextPolicy": {"defaultLanguage": "fr-FR"}},
        {"fullTextPolicy": TEXT, "indexingPolicy": {"fullTextIndexes": [{"path": "/t"}]}},
        spatial(boundingBox=BOX),
        {"conflictResolutionPolicy": {"mode": "Custom"}},
    ],
)
def test_policies_that_fit_together_are_taken(document: dict[str, Any]) -> None:
    check_policies(document)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"vectorEmbeddingPolicy": 5}, "One of the specified inputs is invalid"),
        ({"vectorEmbeddingPolicy": {"vectorEmbeddings": {}}}, "must be a list"),
        ({"vectorEmbeddingPolicy": embeddings(path="/v/")}, "has an invalid Path:/v/. Specify"),
        ({"vectorEmbeddingPolicy": embeddings(path="/v/*")}, "has an invalid Path"),
        ({"vectorEmbeddingPolicy": embeddings(dataType="float33")}, "invalid DataType:float33"),
        (
            {"vectorEmbeddingPolicy": embeddings(distanceFunction="handMeasured")},
            "The Vector Embedding Policy has an invalid DistanceFunction:handMeasured",
        ),
        (
            {"vectorEmbeddingPolicy": embeddings(dimensions=8000)},
            "Dimensions:8000 which is more than the maximum supported value",
        ),
        ({"vectorEmbeddingPolicy": embeddings(dimensions=-1)}, "has Dimensions:-1 which is less"),
        ({"vectorEmbeddingPolicy": embeddings(dimensions=True)}, "Dimensions:True"),
        (
            {"vectorEmbeddingPolicy": {"vectorEmbeddings": [EMBEDDING, EMBEDDING]}},
            "Path more than once",
        ),
        (
            {"vectorEmbeddingPolicy": embeddings(embeddingSource={**SOURCE, "authType": "x"})},
            "The auth type provided in the embedding source of vector policy is invalid.",
        ),
        (
            {"vectorEmbeddingPolicy": embeddings(embeddingSource={**SOURCE, "sourcePaths": []})},
            "sourcePaths",
        ),
        (
            {"vectorEmbeddingPolicy": embeddings(embeddingSource={**SOURCE, "endpoint": ""})},
            "endpoint",
        ),
        (
            {"indexingPolicy": {"vectorIndexes": [{"path": "/v", "type": "flat"}]}},
            "Policy's path::/v not matching in Embedding's path.",
        ),
        (vector({"type": "notFlat"}), "Index Type::notFlat is invalid"),
        (vector({"type": "flat"}, dimensions=506), "maximum supported value 505 for the flat"),
        (vector({"type": "diskANN", "quantizerType": "x"}), "Quantizer Type::x"),
        (
            vector({"type": "quantizedFlat", "quantizationByteSize": 0}),
            "The Vector Indexing Policy parameter QuantizationByteSize value :: 0 is out of range. "
            "The allowed range is between 1 and 256.",
        ),
        (
            vector({"type": "quantizedFlat", "quantizationByteSize": 513}, dimensions=550),
            "QuantizationByteSize value :: 513 is out of range.",
        ),
        (
            vector({"type": "diskANN", "indexingSearchListSize": 5}),
            "IndexingSearchListSize value :: 5 is out of range. The allowed range is between 25 "
            "and 500.",
        ),
        (
            vector({"type": "diskANN", "vectorIndexShardKey": ["country"]}),
            "The Vector Indexing Policy has an invalid Shard Path: country.",
        ),
        (
            vector({"type": "diskANN", "vectorIndexShardKey": ["/a", "/b", "/c"]}),
            "shard paths defined in the Vector Indexing Policy: 3 exceeds the maximum: 1.",
        ),
        (
            vector({"type": "diskANN", "vectorIndexShardKey": "/a"}),
            "One of the specified inputs is invalid",
        ),
        (
            {"fullTextPolicy": {"fullTextPaths": [{"path": "abstract"}]}},
            "The Full Text Policy contains an invalid Path: abstract",
        ),
        (
            {"fullTextPolicy": {"defaultLanguage": "spa-SPA"}},
            "The Full Text Policy contains an unsupported language spa-SPA. Supported languages",
        ),
        (
            {"fullTextPolicy": {"fullTextPaths": [{"path": "/t", "language": "xx"}]}},
            "unsupported language xx",
        ),
        (
            {"fullTextPolicy": {"fullTextPaths": [{"path": "/t"}, {"path": "/t"}]}},
            "Path more than once",
        ),
        (
            {"fullTextPolicy": TEXT, "indexingPolicy": {"fullTextIndexes": [{"path": "/u"}]}},
            "path::/u not matching",
        ),
        ({"geospatialConfig": {"type": "Sphere"}}, "'Sphere'"),
        (spatial(), "needs a boundingBox"),
        (spatial(boundingBox={**BOX, "xmax": 0}), "is empty"),
        ({"conflictResolutionPolicy": {"mode": "Dice"}}, "'Dice'"),
        ({"conflictResolutionPolicy": {"conflictResolutionPath": "ts"}}, "no path"),
        ({"conflictResolutionPolicy": {"conflictResolutionProcedure": 1}}, "must be a text"),
    ],
)
def test_policies_that_do_not_fit_are_refused(document: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as refused:
        check_policies(document)
    assert message in str(refused.value)


def made(world: World, **more: Any) -> dict[str, Any]:
    """The body of a container that was just created."""
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    body = {"id": "c", "partitionKey": key, **more}
    world.database._store.create_container("shop", body)
    return body


def replaced(world: World, body: dict[str, Any]) -> dict[str, Any]:
    return world.database._store.replace_container("shop", body).definition


def test_a_vector_policy_is_for_life_and_an_index_can_only_be_dropped(memory: World) -> None:
    body = made(memory, **vector({"type": "flat"}))
    assert replaced(memory, body)["vectorEmbeddingPolicy"] == embeddings()
    text = "Paths in existing vector indexing policy cannot be modified in Collection Replace"
    with pytest.raises(BadInput, match=text):
        replaced(memory, {**body, **vector({"type": "quantizedFlat"})})
    text = "Paths in existing embedding policy cannot be modified in Collection Replace"
    with pytest.raises(BadInput, match=text):
        replaced(memory, {**body, **vector({"type": "flat"}, dimensions=384)})
    with pytest.raises(BadInput, match="not matching in Embedding's path"):
        replaced(memory, {**body, "vectorEmbeddingPolicy": None})
    with pytest.raises(BadInput, match=text):
        replaced(memory, {**body, "vectorEmbeddingPolicy": None, "indexingPolicy": None})
    more = {"vectorEmbeddings": [EMBEDDING, {**EMBEDDING, "path": "/w"}]}
    dropped = {**body, "vectorEmbeddingPolicy": more, "indexingPolicy": None}
    assert "vectorIndexes" not in replaced(memory, dropped)["indexingPolicy"]
    replaced(memory, {**dropped, "indexingPolicy": vector({"type": "diskANN"})["indexingPolicy"]})


def test_a_conflict_policy_is_completed_and_stays(memory: World) -> None:
    body = made(memory, conflictResolutionPolicy={"mode": "Custom"})
    policy = {
        "mode": "Custom",
        "conflictResolutionPath": "",
        "conflictResolutionProcedure": "",
    }
    assert replaced(memory, body)["conflictResolutionPolicy"] == policy
    body.pop("conflictResolutionPolicy")
    assert replaced(memory, body)["conflictResolutionPolicy"] == policy
    with pytest.raises(BadInput, match="conflictResolutionPolicy of a container can't be changed"):
        replaced(memory, {**body, "conflictResolutionPolicy": {"mode": "LastWriterWins"}})


def test_full_text_and_space_may_change_later(memory: World) -> None:
    body = made(memory)
    texts = {"fullTextPolicy": TEXT, "indexingPolicy": {"fullTextIndexes": [{"path": "/t"}]}}
    assert replaced(memory, {**body, **texts})["fullTextPolicy"] == TEXT
    assert replaced(memory, {**body, **spatial(boundingBox=BOX)})["geospatialConfig"] == {
        "type": "Geometry"
    }
