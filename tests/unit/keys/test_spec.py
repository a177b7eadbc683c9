"""A container lives with its key for ever: a specification with a mistake must not be accepted."""

from typing import Any

import pytest

from armillary.errors import BadInput
from armillary.keys import SyntheticKey

GOOD: dict[str, Any] = {
    "version": 1,
    "path": "/partitionKey",
    "parts": ["/date"],
    "separator": ".",
    "suffix": {"kind": "computed", "k": 400, "source": "/vin"},
}


@pytest.mark.parametrize(
    "spec",
    [
        GOOD,
        {"version": 1, "path": "/partitionKey", "parts": ["/deviceId", "/date"], "separator": "-"},
        {"version": 1, "path": "/m/key", "parts": ["/m/a", '/"a b"/c'], "separator": "--"},
        GOOD | {"suffix": {"kind": "random", "k": 1}},
        GOOD | {"suffix": {"kind": "random", "k": 100_000}},
        GOOD | {"parts": []},
        GOOD | {"escape": True},
        GOOD | {"parts": [{"path": "/ts", "bucket": "month", "unit": "milliseconds"}, "/d"]},
    ],
)
def test_a_specification_reads_back(spec: dict[str, Any]) -> None:
    key = SyntheticKey.from_json(spec)
    assert key.to_json() == spec
    assert SyntheticKey.from_json(key.to_json()) == key


def test_defaults() -> None:
    key = SyntheticKey.from_json({"version": 1, "path": "/k", "parts": [{"path": "/a"}, "/b"]})
    assert key.to_json() == {"version": 1, "path": "/k", "parts": ["/a", "/b"], "separator": "-"}
    timed = SyntheticKey.from_json(GOOD | {"parts": [{"path": "/ts", "bucket": "day"}]})
    assert timed.to_json()["parts"] == [{"path": "/ts", "bucket": "day", "unit": "iso"}]


def suffix(**members: Any) -> dict[str, Any]:
    return GOOD | {"suffix": members}


def without(member: str) -> dict[str, Any]:
    return {name: value for name, value in GOOD.items() if name != member}


BAD: list[tuple[Any, str]] = [
    (None, "A synthetic key must be an object"),
    ([GOOD], "A synthetic key must be an object"),
    (GOOD | {"seperator": "."}, "A synthetic key has the unknown member 'seperator'; allowed are"),
    (without("version"), "has version None; this release knows version 1"),
    (GOOD | {"version": 2}, "has version 2; this release knows version 1"),
    (GOOD | {"version": True}, "has version True"),
    (GOOD | {"version": 1.0}, "has version 1.0"),
    (without("path"), "A synthetic key needs 'path', a property path"),
    (GOOD | {"path": 7}, "A synthetic key needs 'path', a property path"),
    (GOOD | {"path": "partitionKey"}, "The path 'partitionKey' is invalid"),
    (GOOD | {"path": "/a/*"}, "The path '/a/*' is invalid"),
    (GOOD | {"path": "/_etag"}, "uses /_etag, which the server writes after the key is made"),
    (without("parts"), "needs 'parts', a list of at most 16"),
    (GOOD | {"parts": "/date"}, "needs 'parts', a list of at most 16"),
    (GOOD | {"parts": ["/a"] * 17}, "needs 'parts', a list of at most 16"),
    (GOOD | {"parts": ["date"]}, "The path 'date' is invalid"),
    (GOOD | {"parts": [7]}, "A part of a synthetic key must be an object, not 7"),
    (GOOD | {"parts": [{}]}, "A part of a synthetic key needs 'path'"),
    (GOOD | {"parts": [{"path": "/a", "bukket": "day"}]}, "has the unknown member 'bukket'"),
    (
        GOOD | {"parts": [{"path": "/a", "bucket": "week"}]},
        "has the bucket 'week'; allowed are year",
    ),
    (GOOD | {"parts": [{"path": "/a", "bucket": None}]}, "has the bucket None; allowed are"),
    (GOOD | {"parts": [{"path": "/a", "bucket": ["day"]}]}, "has the bucket ['day']; allowed are"),
    (
        GOOD | {"parts": [{"path": "/a", "bucket": "day", "unit": "ns"}]},
        "has the unit 'ns'; allowed are iso, seconds, milliseconds",
    ),
    (GOOD | {"parts": [{"path": "/a", "unit": "iso"}]}, "part /a with a 'unit' but no 'bucket'"),
    (GOOD | {"parts": ["/_ts"]}, "uses /_ts, which the server writes"),
    (GOOD | {"parts": ["/partitionKey"]}, "is stored in /partitionKey and made of /partitionKey"),
    (GOOD | {"parts": ["/partitionKey/x"]}, "stored in /partitionKey and made of /partitionKey/x"),
    (GOOD | {"path": "/a/b", "parts": ["/a"]}, "is stored in /a/b and made of /a"),
    (without("suffix") | {"parts": []}, "has neither parts nor a suffix"),
    (GOOD | {"separator": ""}, "needs a 'separator' of 1 to 16 characters"),
    (GOOD | {"separator": None}, "needs a 'separator' of 1 to 16 characters"),
    (GOOD | {"separator": "-" * 17}, "needs a 'separator' of 1 to 16 characters"),
    (GOOD | {"separator": "é"}, "characters other than printable ASCII"),
    (GOOD | {"separator": "\n"}, "characters other than printable ASCII"),
    (GOOD | {"escape": 1}, "has an 'escape' that is neither true nor false"),
    (GOOD | {"escape": True, "separator": "\\"}, "has the escape character \\ in its separator"),
    (GOOD | {"suffix": None}, "A suffix of a synthetic key must be an object"),
    (GOOD | {"suffix": 400}, "A suffix of a synthetic key must be an object"),
    (suffix(k=400), "has the suffix kind None; allowed are random, computed"),
    (suffix(kind="hash", k=400), "has the suffix kind 'hash'; allowed are random, computed"),
    (suffix(kind="random"), "has k = None; k is a whole number from 1 to 100000"),
    (suffix(kind="random", k=0), "has k = 0"),
    (suffix(kind="random", k=-1), "has k = -1"),
    (suffix(kind="random", k=100_001), "has k = 100001"),
    (suffix(kind="random", k=4.0), "has k = 4.0"),
    (suffix(kind="random", k=True), "has k = True"),
    (suffix(kind="random", k="400"), "has k = '400'"),
    (suffix(kind="random", k=4, source="/vin"), "has a random suffix with a 'source'"),
    (suffix(kind="random", k=4, seed=1), "has the unknown member 'seed'"),
    (suffix(kind="computed", k=4), "has a computed suffix without 'source'"),
    (suffix(kind="computed", k=4, source=None), "A suffix of a synthetic key needs 'source'"),
    (suffix(kind="computed", k=4, source="vin"), "The path 'vin' is invalid"),
    (suffix(kind="computed", k=4, source="/_rid"), "uses /_rid, which the server writes"),
    (suffix(kind="computed", k=4, source="/partitionKey"), "made of /partitionKey"),
]


@pytest.mark.parametrize(("spec", "why"), BAD)
def test_a_wrong_specification_is_refused_and_says_why(spec: Any, why: str) -> None:
    with pytest.raises(BadInput) as caught:
        SyntheticKey.from_json(spec)
    assert why in caught.value.message
