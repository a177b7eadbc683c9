"""Indexing policies and unique keys: defaults, echo, and every reason to refuse one."""

from typing import Any

import pytest

from armillary.errors import BadInput
from armillary.store.index.policy import (
    parse_policy,
    parse_unique_keys,
    unique_keys_json,
)

DEFAULT = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": '/"_etag"/?'}],
}


def test_an_absent_policy_is_the_default_one() -> None:
    assert parse_policy(None).to_json() == parse_policy({}).to_json() == DEFAULT


def test_an_echoed_policy_is_read_as_the_same_policy() -> None:
    policy = parse_policy(
        {
            "indexingMode": "Consistent",
            "includedPaths": [
                {"path": "/a/?", "indexes": [{"kind": "Spatial", "dataType": "Point"}]},
                {"path": "/ev/[]/{x,y}/?"},
                {"path": "/ev/[]/{x,z}/?"},
            ],
            "excludedPaths": [{"path": "/*"}],
            "compositeIndexes": [[{"path": "/a/?"}, {"path": "/b", "order": "Descending"}]],
            "spatialIndexes": [{"path": "/loc/?", "types": ["Point", "Polygon"]}],
            "vectorIndexes": [{"path": "/vec", "type": "diskANN", "quantizationByteSize": 96}],
            "fullTextIndexes": [{"path": "/text"}],
        }
    )
    echo = policy.to_json()
    assert parse_policy(echo) == policy
    assert [entry["path"] for entry in echo["includedPaths"]] == [
        "/a/?",
        "/ev/[]/{x,y}/?",
        "/ev/[]/{x,z}/?",
    ]
    assert echo["includedPaths"][0]["indexes"] == [{"kind": "Spatial", "dataType": "Point"}]
    assert echo["excludedPaths"] == [{"path": "/*"}, {"path": '/"_etag"/?'}]
    assert echo["compositeIndexes"] == [
        [{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]
    ]
    assert {"spatialIndexes", "vectorIndexes", "fullTextIndexes"} <= echo.keys()


def test_a_policy_of_old_comes_back_in_the_form_of_today() -> None:
    kinds = [{"kind": "Hash", "dataType": "String"}, {"kind": "Range", "dataType": "Number"}]
    assert parse_policy({"includedPaths": [{"path": "/", "indexes": kinds}]}).to_json() == DEFAULT
    with pytest.raises(BadInput, match="An entry of indexes"):
        parse_policy({"includedPaths": [{"path": "/*", "indexes": [5]}]})


def test_the_echo_belongs_to_the_caller() -> None:
    policy = parse_policy(None)
    policy.to_json()["includedPaths"].clear()
    assert policy.to_json() == DEFAULT


def test_the_source_is_not_kept() -> None:
    source = {"includedPaths": [{"path": "/*"}], "excludedPaths": []}
    policy = parse_policy(source)
    source["includedPaths"][0]["path"] = "changed"
    assert policy.to_json() == DEFAULT


def test_included_paths_are_everything_only_when_nothing_else_is_said() -> None:
    assert parse_policy({"excludedPaths": [{"path": "/a/*"}]}).to_json()["includedPaths"] == [
        {"path": "/*"}
    ]
    assert parse_policy({"excludedPaths": [{"path": "/*"}]}).to_json()["includedPaths"] == []


def test_mode_none_indexes_nothing() -> None:
    for given in ({"automatic": False}, {}, {"includedPaths": [{"path": "/*"}]}):
        assert parse_policy({"indexingMode": "none", **given}).to_json() == {
            "indexingMode": "none",
            "automatic": False,
            "includedPaths": [],
            "excludedPaths": [],
        }


def test_what_is_indexed_is_indexed_automatically() -> None:
    """The service gives `true` back for `false` (the Rust SDK's container_crud_simple)."""
    for mode in ({}, {"indexingMode": "consistent"}, {"indexingMode": "lazy"}):
        assert parse_policy({"automatic": False} | mode).to_json() == DEFAULT


def test_lazy_is_consistent() -> None:
    assert parse_policy({"indexingMode": "lazy"}).to_json() == DEFAULT


def test_null_lists_are_absent_ones() -> None:
    nulls = dict.fromkeys(("includedPaths", "excludedPaths", "compositeIndexes", "spatialIndexes"))
    assert parse_policy(nulls).to_json() == DEFAULT


def composite(*paths: str) -> dict[str, Any]:
    return {"compositeIndexes": [[{"path": path} for path in paths]]}


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([], "must be a JSON object"),
        ({"indexingMode": "eager"}, "'eager' is invalid"),
        ({"indexingMode": 5}, "5 is invalid"),
        ({"indexingMode": "none", "automatic": True}, "needs 'automatic' to be false"),
        ({"automatic": "yes"}, "must be true or false"),
        ({"indexingMode": "none", **composite("/a", "/b")}, "does not allow compositeIndexes"),
        ({"includedPaths": [{"path": "/a/?"}]}, "special mandatory indexing path"),
        ({"includedPaths": [], "excludedPaths": []}, "special mandatory indexing path"),
        ({"includedPaths": {}}, "'includedPaths' must be a list"),
        ({"includedPaths": ["/*"]}, "An entry of includedPaths must be a JSON object"),
        ({"includedPaths": [{}]}, "must be a string"),
        ({"includedPaths": [{"path": "/*"}, {"path": "/x-y/?"}]}, "failed near position '2'"),
        (
            {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/*"}]},
            "both included and excluded",
        ),
        ({"excludedPaths": [{"path": "/a/[]/{b,c}/?"}]}, "only be included"),
        ({"excludedPaths": [{"path": f"/p{n}/?"} for n in range(1501)]}, "allowed are 1500"),
        (composite("/a"), "1 paths; allowed are 2 to 8"),
        (composite(*(f"/p{n}" for n in range(9))), "9 paths; allowed are 2 to 8"),
        (composite("/a", "/b/*"), "could not be accepted"),
        (composite("/a", "/a/?"), "more than once"),
        (composite("/a/[]/b", "/c/[]/d"), "one array only"),
        (composite("/a/[]/b/[]/c", "/d"), "one array only"),
        ({"compositeIndexes": [{"path": "/a"}]}, "must be a list of paths"),
        ({"compositeIndexes": [[{"path": "/a", "order": "up"}, {"path": "/b"}]]}, "'up'"),
        ({"compositeIndexes": composite("/a", "/b")["compositeIndexes"] * 101}, "allowed are 100"),
        ({"spatialIndexes": [{"path": "/a/?", "types": ["Cube"]}]}, "Cube"),
        ({"spatialIndexes": [{"path": "/a"}]}, "could not be accepted"),
        ({"spatialIndexes": [{"path": "/e/[]/{a,b}/?"}]}, "tuple path"),
        ({"vectorIndexes": [{"path": "/v/*", "type": "flat"}]}, "could not be accepted"),
        ({"fullTextIndexes": [{"path": "/t/*"}]}, "could not be accepted"),
    ],
)
def test_a_policy_out_of_order_is_refused(policy: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message.replace("(", r"\(")):
        parse_policy(policy)


def test_unique_keys_are_read_and_written_back() -> None:
    source = {"uniqueKeys": [{"paths": ["/a", "/b/c"]}, {"paths": ["/first-name"]}]}
    keys = parse_unique_keys(source)
    assert keys == ((("a",), ("b", "c")), (("first-name",),))
    assert parse_unique_keys(unique_keys_json(keys)) == keys
    assert parse_unique_keys(None) == parse_unique_keys({}) == ()
    assert unique_keys_json(()) == {"uniqueKeys": []}


def keys_of(*paths: list[Any]) -> dict[str, Any]:
    return {"uniqueKeys": [{"paths": each} for each in paths]}


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("x", "must be a JSON object"),
        ({"uniqueKeys": [[]]}, "must be a JSON object"),
        (keys_of(*([f"/p{n}"] for n in range(11))), "11 unique keys; allowed are 10"),
        (keys_of([]), "0 paths; allowed are 1 to 16"),
        (keys_of([f"/p{n}" for n in range(17)]), "17 paths; allowed are 1 to 16"),
        (keys_of(["/a/*"]), "invalid"),
        (keys_of(["/a/[]/b"]), "invalid"),
        (keys_of([5]), "must be a string"),
        (keys_of(["/a", "/a"]), "more than once"),
        (keys_of(["/a", "/b"], ["/b", "/a"]), "given more than once"),
        (keys_of(["/_ts"]), "system property"),
    ],
)
def test_unique_keys_out_of_order_are_refused(policy: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_unique_keys(policy)
