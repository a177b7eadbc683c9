"""Without these, a sender could keep the room for bodies by sending a byte now and then, or by many
small bodies from one address."""

from __future__ import annotations

from dataclasses import dataclass, field

from armillary.server.receiving import PROGRESS_BYTES, Receiving


@dataclass(eq=False)
class Client:
    receiving: Receiving
    address: str
    refused: list[str] = field(default_factory=list)

    def send(self, size: int, now: float) -> None:
        self.receiving.hold(self, self.address, size, now)

    def give_up_body(self) -> None:
        self.refused.append(self.address)
        self.receiving.hold(self, self.address, 0, 0.0)


def test_a_byte_now_and_then_is_no_progress() -> None:
    receiving = Receiving(4 * PROGRESS_BYTES)
    quick, dribbling = Client(receiving, "a"), Client(receiving, "a")
    dribbling.send(2 * PROGRESS_BYTES, 0.0)
    quick.send(PROGRESS_BYTES, 1.0)
    for second in range(2, 60):
        dribbling.send(2 * PROGRESS_BYTES + second, float(second))
    quick.send(3 * PROGRESS_BYTES, 60.0)
    assert (len(dribbling.refused), len(quick.refused)) == (1, 0)
    assert receiving.bytes == 3 * PROGRESS_BYTES


def test_who_just_began_stays_although_others_were_quick_before_they_stalled() -> None:
    receiving = Receiving(4 * PROGRESS_BYTES)
    stalled, new = Client(receiving, "a"), Client(receiving, "a")
    stalled.send(3 * PROGRESS_BYTES, 0.001)
    for step in range(1, 9):
        new.send(step * PROGRESS_BYTES // 4, step * 10.0)
    assert (len(stalled.refused), len(new.refused)) == (1, 0)


def test_the_address_that_holds_the_most_gives_way() -> None:
    receiving = Receiving(10 * PROGRESS_BYTES)
    many = [Client(receiving, "a") for _ in range(9)]
    alone = Client(receiving, "b")
    alone.send(PROGRESS_BYTES, 0.0)
    for at, one in enumerate(many):
        one.send(PROGRESS_BYTES, float(at + 1))
    alone.send(2 * PROGRESS_BYTES, 100.0)
    assert [len(one.refused) for one in many] == [1, *[0] * 8]
    assert not alone.refused
