"""The grammar of candidates, both ways, and that a candidate is the key the product would use."""

from random import Random

import pytest

from armillary.advisor.keys.candidates import Candidate, Kind, parse_candidate, parse_candidates
from armillary.encoding.hashing import epk
from armillary.encoding.partition_key import parse_definition
from armillary.errors import BadInput
from armillary.keys.synthetic import SyntheticKey
from armillary.values import UNDEFINED

ITEM = {"a": "x", "b": {"c": 7}, "date": "2018-08-09", "vin": "1HG", "ts": "2026-04-09T13:05:00Z"}


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("/a", "path", ("x",)),
        ("/b/c", "path", (7,)),
        ("/missing", "path", (UNDEFINED,)),
        ("/a,/b/c", "hierarchical", ("x", 7)),
        ('/a+"-"+/b/c', "concat", ("x-7",)),
        ('/date+"."+hash(/vin,400)', "computed_suffix", None),
        ('/date+"."+random(400)', "random_suffix", None),
        ('/a+"."+month(/ts)', "time_bucket", ("x.2026-04",)),
        ("day(/ts)", "time_bucket", ("2026-04-09",)),
        ("hash(/vin,16)", "computed_suffix", None),
        ('/a+"."+day(/b/c,seconds)', "time_bucket", ("x.1970-01-01",)),
        ('/a+"\\""+/date', "concat", ('x"2018-08-09',)),
    ],
)
def test_a_text_means_one_key_and_is_written_the_same(
    text: str, kind: Kind, values: tuple[object, ...] | None
) -> None:
    candidate = parse_candidate(text)
    assert (candidate.kind, candidate.name) == (kind, text)
    assert parse_candidate(candidate.name) == candidate
    if values is not None:
        assert candidate.values(ITEM) == values


def test_spaces_and_quoted_names_are_read() -> None:
    assert parse_candidate(' /"a+b" + "-" + /c ').name == '/"a+b"+"-"+/c'
    assert parse_candidate('/"a,b",/c').paths == (("a,b",), ("c",))


def test_a_key_is_where_the_product_would_put_it() -> None:
    candidate = parse_candidate('/date+"."+hash(/vin,400)')
    body = candidate.container_json("trips")
    expected = SyntheticKey.from_json(body["syntheticKey"]).value_for(ITEM)
    assert candidate.values(ITEM) == (expected,)
    assert candidate.epk((expected,)) == epk((expected,), parse_definition(body["partitionKey"]))
    assert (candidate.levels, candidate.source) == ((("date",),), ("vin",))


def test_a_random_suffix_draws_from_the_random_it_is_given() -> None:
    candidate = parse_candidate('/date+"."+random(400)')
    assert candidate.values(ITEM, Random(1)) == candidate.values(ITEM, Random(1))
    assert candidate.is_random
    assert candidate.suffixes == 400


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "/a+/b", '/a+"-"', '"-"+/a', "/a,/b,/c,/d", "/a,/a", '/a,/b+"-"+/c', "/a+nope(/b)",
        '/a+"-"+/b+"."+random(4)', 'random(4)+"-"+/a', '/a+"."+random(0)', '/a+"."+hash(/vin)',
        '/a+"."+month(/ts,weeks)', '/partitionKey+"-"+/a', "/*", '/a+"-"+/b)',
    ],
)  # fmt: skip
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_candidate(text)


def test_the_same_key_twice_is_one_candidate() -> None:
    found: list[Candidate] = parse_candidates(["/a", " /a", "/b"])
    assert [one.name for one in found] == ["/a", "/b"]
