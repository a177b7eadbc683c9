"""Without these, a split would leave every thread of a program with shorter turns for ever, or take
them away while another split still needs them."""

from armillary.limits import MOVE_PIECE_BYTES, MOVE_PIECE_BYTES_MIN, MOVE_PIECE_ROWS
from armillary.partition.ranges import Range
from armillary.store.moves.filling import LOAD_ROWS, Filling


def test_a_small_piece_has_few_rows_however_short_they_are() -> None:
    """Alongside a busy reader a row may cost the writer 50 µs: thousands block all writers."""
    one = Range(1, 7, b"", b"\xff", 1, ())
    filling = Filling([one], [one])
    keys = [b"\x51%06d" % n for n in range(9_000)]
    filling.gathered[7]._rows.put([(key, 1, b"") for key in keys])
    pieces = []
    while filling.loading:
        pieces.append([key for key, _ in filling.next_rows()[1]])
        filling._piece_bytes = MOVE_PIECE_BYTES if len(pieces) > 2 else MOVE_PIECE_BYTES_MIN
    assert [key for piece in pieces for key in piece] == keys
    small = MOVE_PIECE_ROWS * MOVE_PIECE_BYTES_MIN // MOVE_PIECE_BYTES
    assert [len(piece) for piece in pieces[:4]] == [small] * 3 + [MOVE_PIECE_ROWS]
    assert small % LOAD_ROWS == 0
