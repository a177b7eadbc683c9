"""Without these, rows of a large partition could come back out of order, or twice, or not at all,
and its split with them."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.errors import StorageFull
from armillary.store.moves import sorted_rows
from armillary.store.moves.sorted_rows import SortedRows

ROWS = st.lists(st.tuples(st.binary(max_size=4), st.integers(0, 9), st.binary(max_size=3)))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of 8 rows and more, so that some hundred rows are in files of several levels."""
    monkeypatch.setattr(sorted_rows, "CHUNK_ROWS", 4)
    monkeypatch.setattr(sorted_rows, "MEMORY_CHUNKS", 2)
    monkeypatch.setattr(sorted_rows, "BLOCK_ROWS", 3)
    monkeypatch.setattr(sorted_rows, "LEVEL_FILES", 4)
    monkeypatch.setattr(sorted_rows, "PIECE_ROWS", 16)


def filled(rows: list[tuple[bytes, int, bytes]]) -> SortedRows:
    made = SortedRows()
    for row in rows:
        made.put([row])
    return made


def flat(made: SortedRows) -> list[tuple[bytes, int, bytes]]:
    """And no key is in two pieces."""
    pieces = list(made.pieces())
    assert all(piece for piece in pieces)
    assert all(one[-1][0] < other[0][0] for one, other in pairwise(pieces))
    return [row for piece in pieces for row in piece]


@given(rows=ROWS)
def test_rows_come_in_order(rows: list[tuple[bytes, int, bytes]]) -> None:
    assert flat(filled(rows)) == sorted(rows)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("count", [0, 1, 8, 9, 25, 500])
def test_so_they_do_from_files(count: int) -> None:
    random = Random(count)
    rows = [(random.randbytes(2), n % 3, random.randbytes(5)) for n in range(count)]
    made = filled(rows)
    assert flat(made) == sorted(rows)
    in_turns = zip(made.pieces(), made.pieces(), strict=True)  # two readers of the same files
    assert all(one == other for one, other in in_turns)
    made.close()
    assert flat(made) == []
    made.close()


@pytest.mark.usefixtures("small")
def test_a_full_disk_is_said_in_our_words(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def write(self, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        def close(self) -> None:
            pass

    monkeypatch.setattr("armillary.store.moves.sorted_rows.tempfile.TemporaryFile", Full)
    with pytest.raises(StorageFull):
        filled([(bytes([n % 256]), n, b"") for n in range(100)])
