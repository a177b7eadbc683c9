"""Paths, rids and etags: the text form and the value are one thing, for any value."""

from hypothesis import given
from hypothesis import strategies as st

from armillary.encoding import etags, rids
from armillary.encoding.paths import extract, format_path, parse_path
from armillary.errors import BadInput

SEGMENTS = st.lists(
    st.text(st.sampled_from("ab_9 /\\\"'*?[]é") | st.characters(), min_size=1, max_size=6),
    min_size=1,
    max_size=4,
).map(tuple)


@given(segments=SEGMENTS)
def test_a_path_survives_its_text(segments: tuple[str, ...]) -> None:
    assert parse_path(format_path(segments)) == segments


@given(text=st.text(st.sampled_from("/ab\"'\\ *[]"), max_size=10))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    try:
        segments = parse_path(text)
    except BadInput:
        return
    assert all(segments)
    assert parse_path(format_path(segments)) == segments


@given(segments=SEGMENTS, value=st.integers() | st.none() | st.text())
def test_extract_finds_what_was_put_there(segments: tuple[str, ...], value: object) -> None:
    item: object = value
    for name in reversed(segments):
        item = {name: item}
    assert extract(item, segments) == value


@given(
    database=st.integers(0, 2**32 - 1),
    container=st.integers(0, 2**31 - 1),
    ordinal=st.integers(0, 2**60 - 1),
)
def test_an_item_rid_leads_back_to_its_database(
    database: int, container: int, ordinal: int
) -> None:
    text = rids.item_rid(rids.container_rid(rids.database_rid(database), container), ordinal)
    item = rids.parse_rid(text)
    owner = rids.parse_rid(item.parent)
    assert (item.kind, item.number) == ("item", ordinal)
    assert (owner.kind, owner.number) == ("container", container)
    assert rids.parse_rid(owner.parent) == rids.Rid("database", "", database)
    assert "/" not in text


@given(
    first=st.tuples(
        st.integers(0, 2**48 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)
    ),
    second=st.tuples(
        st.integers(0, 2**48 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)
    ),
)
def test_etags_are_equal_only_when_their_parts_are(
    first: tuple[int, int, int], second: tuple[int, int, int]
) -> None:
    left, right = etags.format_etag(*first), etags.format_etag(*second)
    assert len(left) == 36
    assert etags.matches(left, right) is (first == second)
