"""Entity tags: a repeated tag lets a stale write through, a misread one refuses a good write."""

import re
import struct

import pytest

from armillary.encoding.etags import ETAG_BYTES, etag_bytes, etag_text, format_etag, matches

TS = 0x5F8898C5


def test_the_form_is_that_of_the_service() -> None:
    tag = format_etag(0x0D00243A0001, 0x0D000002, TS)
    assert tag == "0d00243a-0001-0d00-0002-5f8898c50000"
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", tag)


def test_the_last_group_is_the_time_and_four_zeros() -> None:
    assert format_etag(1, 1, TS).rsplit("-")[-1] == f"{TS:08x}0000"


def test_bytes_and_text_are_one_tag() -> None:
    tag = etag_bytes(2**48 - 1, 2**32 - 1, 2**32 - 1)
    assert len(tag) == ETAG_BYTES
    assert etag_text(tag) == "ffffffff-ffff-ffff-ffff-ffffffff0000"


def test_each_part_makes_another_tag() -> None:
    parts = [0, 1, 255, 2**16, 2**31, 2**32 - 1]
    counters = [*parts, 2**32, 2**48 - 1]
    tags = {format_etag(c, o, t) for c in counters for o in parts for t in parts}
    assert len(tags) == len(counters) * len(parts) ** 2


@pytest.mark.parametrize("parts", [(2**48, 0, 0), (0, 2**32, 0), (0, 0, 2**32), (-1, 0, 0)])
def test_parts_that_do_not_fit_are_not_wrapped(parts: tuple[int, int, int]) -> None:
    with pytest.raises(struct.error):
        etag_bytes(*parts)


TAG = format_etag(7, 3, TS)


@pytest.mark.parametrize("condition", [TAG, f'"{TAG}"', f' "{TAG}" ', "*", " * "])
@pytest.mark.parametrize("held", [TAG, f'"{TAG}"'])
def test_a_condition_that_names_the_tag(condition: str, held: str) -> None:
    assert matches(condition, held)


@pytest.mark.parametrize("condition", ["", '""', "x", TAG[:-1], TAG.upper(), f'"{TAG}x"', '"*"'])
def test_a_condition_that_does_not(condition: str) -> None:
    assert not matches(condition, TAG)
