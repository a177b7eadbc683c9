"""The ledger of a data folder: every process that has the folder open shares its budgets.

Budgets below 2,000 RU/s are charged in the file, operation by operation: with few operations in a
second, slices would be as small as one of them. Larger ones are used in slices of r/50. A budget
that may burst is always charged directly, because its bank has to see every second's remainder.

Asking is reading, without a lock; most refusals cost no more than that. Charging takes the lock of
one slot for a few microseconds. Who is killed inside leaves a slot whose checksum is wrong: it
admits nothing for the rest of that second and then goes on as if idle, so that no second admits
more than it may.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from armillary.limits import BURST_RU_MAX, LEDGER_DIRECT_RU, LEDGER_SLICES_FILE, LEDGER_SLOTS
from armillary.partition.budgets.admission import Budget, BudgetState, Enforce
from armillary.partition.budgets.ledger import (
    Allowance,
    Held,
    LedgerDefaults,
    adopt,
    fresh_state,
    from_the_future,
)
from armillary.partition.budgets.slices import Grant, Order, Slices, cut
from armillary.partition.budgets.slots import (
    BODY_END,
    BODY_START,
    RESIDUE,
    STATE,
    lock,
    open_slots,
    seed_of,
    unlock,
)

ASK_MS = 10  # between two looks at a used-up budget: others may give back
_pack = STATE.pack
_unpack = STATE.unpack_from
_crc32 = zlib.crc32


class _MovedOut(Exception):
    """Another budget lives in the slot now."""


class _Entry:
    """Where a budget lives, and a scratch `Budget` that knows the rules."""

    __slots__ = (
        "allowance",
        "budget",
        "burst",
        "end",
        "high_second",
        "lenient",
        "plain",
        "ru",
        "seed",
        "sliced",
        "slot",
        "start",
    )

    def __init__(self, allowance: Allowance, slot: int, budget: Budget, enforce: Enforce) -> None:
        self.allowance = allowance
        self.ru, self.burst = allowance.ru, allowance.burst
        self.budget = budget
        self.slot = slot
        self.start, self.end = slot + BODY_START, slot + BODY_END
        self.seed = seed_of(allowance.key)
        self.high_second = -2
        self.plain = enforce != "off" and not allowance.burst
        """Without a positive balance there is nothing more to ask."""
        self.lenient = enforce == "report"
        """Nothing is refused, and what would have been is no debt."""
        direct = allowance.ru < LEDGER_DIRECT_RU or (
            allowance.burst and allowance.ru < BURST_RU_MAX
        )
        self.sliced = not direct


class FileLedger(LedgerDefaults):
    def __init__(self, path: Path, enforce: Enforce = "on", slots: int = LEDGER_SLOTS) -> None:
        self._enforce: Enforce = enforce
        self._refused = 0
        self._file = open_slots(path, slots)
        self._map = self._file.map
        self._entries: dict[int, _Entry] = {}
        self._slices = Slices(self._take, LEDGER_SLICES_FILE, ask_ms=ASK_MS, enforce=enforce)
        self._closed = False

    @property
    def refused(self) -> int:
        return self._refused + self._slices.refused

    # HOT: admit and charge run once per request. The rules they shorten are Budget's;
    # tests/property/test_ledger.py compares.

    def admit(self, allowance: Allowance, now_ms: int, *, low: bool = False) -> int | None:
        entry = self._entries.get(allowance.key)
        if entry is None or entry.ru != allowance.ru or entry.burst is not allowance.burst:
            entry = self._enter(allowance, now_ms)
        if entry.sliced:
            return self._slices.admit(allowance, now_ms, low=low)
        if not low:
            entry.high_second = second = now_ms // 1000
            body = self._map[entry.start : entry.end]
            if _crc32(body, entry.seed) == RESIDUE:
                r, balance, _, _, then = _unpack(body)
                if then == second:
                    if balance > 0.0:
                        return None
                    if entry.plain and r == allowance.ru:
                        self._refused += 1
                        if entry.lenient:
                            return None
                        return (second + 1) * 1000 - now_ms + 1000 * int(-balance // r)
        if self._enforce == "off":
            return None
        try:
            return self._judge(entry, now_ms, low)
        except _MovedOut:
            return self.admit(allowance, now_ms, low=low)

    def charge(self, allowance: Allowance, ru: float, now_ms: int) -> None:
        entry = self._entries.get(allowance.key)
        if entry is None or entry.ru != allowance.ru or entry.burst is not allowance.burst:
            entry = self._enter(allowance, now_ms)
        if entry.sliced:
            self._slices.charge(allowance, ru, now_ms)
            return
        file, slot = self._file, entry.slot
        if entry.lenient and entry.plain:
            body = self._map[entry.start : entry.end]
            if _crc32(body, entry.seed) == RESIDUE:
                r, balance, _, _, second = _unpack(body)
                if second == now_ms // 1000 and r == allowance.ru and balance <= 0.0:
                    return  # used up already, and it stays so until the second is over
        with file.lock:
            lock(file.handle, slot)
            try:
                body = self._map[entry.start : entry.end]
                if _crc32(body, entry.seed) == RESIDUE:
                    r, balance, bank, used, second = _unpack(body)
                    if second == now_ms // 1000 and r == allowance.ru and balance > ru:
                        body = _pack(r, balance - ru, bank, used + ru, second)
                        crc = _crc32(body, entry.seed).to_bytes(4, "little")
                        self._map[entry.start : entry.end] = body + crc
                        return
                budget = entry.budget
                adopt(budget, allowance, self._state(entry, now_ms), now_ms)
                budget.charge(now_ms, ru)
                file.write(slot, entry.seed, budget.state())
                return
            except _MovedOut:
                pass
            finally:
                unlock(file.handle, slot)
        self.charge(allowance, ru, now_ms)

    def _judge(self, entry: _Entry, now_ms: int, low: bool) -> int | None:
        """Everything but the plain case: a new second, nothing left, low priority."""
        file, budget = self._file, entry.budget
        with file.lock:
            state = file.read(entry.slot, entry.seed)
            if state is None or from_the_future(state, now_ms):
                with file.locked(entry.slot):
                    state = self._state(entry, now_ms)
                    file.write(entry.slot, entry.seed, state)
            if low and entry.high_second >= now_ms // 1000 - 1:
                budget.restore(state)
                budget.admit(now_ms)  # only to tell it that high priority is about
            adopt(budget, entry.allowance, state, now_ms)
            refused = budget.refused
            wait_ms = budget.admit(now_ms, low=low)
            self._refused += budget.refused - refused
            return wait_ms

    def _take(self, order: Order) -> Grant:
        entry = self._enter(order.allowance, order.now_ms)
        file, budget = self._file, entry.budget
        try:
            with file.lock, file.locked(entry.slot):
                adopt(budget, order.allowance, self._state(entry, order.now_ms), order.now_ms)
                budget.report(order.now_ms)  # renews
                state, granted = cut(budget.state(), order)
                file.write(entry.slot, entry.seed, state)
                return Grant(granted, state.balance, state.second)
        except _MovedOut:
            return self._take(order)

    def _state(self, entry: _Entry, now_ms: int) -> BudgetState:
        """What the slot says, under its lock."""
        state = self._file.read(entry.slot, entry.seed)
        if state is None:
            if self._file.owner(entry.slot) != entry.allowance.key:
                self._entries.pop(entry.allowance.key, None)
                raise _MovedOut
            # Its writer was killed. What this second has used is not known: it may be everything.
            return BudgetState(float(entry.allowance.ru), 0.0, 0.0, 0.0, now_ms // 1000)
        return fresh_state(entry.allowance, now_ms) if from_the_future(state, now_ms) else state

    # --- seldom -----------------------------------------------------------------------------------

    def _enter(self, allowance: Allowance, now_ms: int) -> _Entry:
        entry = self._entries.get(allowance.key)
        if entry is not None and entry.allowance == allowance:
            return entry
        slot = self._file.find(allowance.key, fresh_state(allowance, now_ms))
        budget = Budget(allowance.ru, now_ms, burst=allowance.burst, enforce=self._enforce)
        if len(self._entries) >= LEDGER_SLOTS:
            self._entries.pop(next(iter(self._entries)), None)
        entry = self._entries[allowance.key] = _Entry(allowance, slot, budget, self._enforce)
        return entry

    def held(self, allowance: Allowance, now_ms: int) -> Held | None:
        if self._enforce != "on" or not self._enter(allowance, now_ms).sliced:
            return None
        return self._slices.held(allowance)

    def reset(self, allowance: Allowance, now_ms: int) -> None:
        self._slices.forget(allowance)
        entry = self._enter(allowance, now_ms)
        with self._file.lock, self._file.locked(entry.slot):
            if self._file.owner(entry.slot) == allowance.key:
                self._file.write(entry.slot, entry.seed, fresh_state(allowance, now_ms))
            else:
                self._entries.pop(allowance.key, None)  # it left, and will start afresh

    def idle(self, now_ms: int) -> None:
        self._slices.idle(now_ms)

    def state(self, allowance: Allowance, now_ms: int) -> BudgetState:
        entry = self._enter(allowance, now_ms)
        try:
            with self._file.lock, self._file.locked(entry.slot):
                adopt(entry.budget, allowance, self._state(entry, now_ms), now_ms)
                entry.budget.report(now_ms)  # renews
                return entry.budget.state()
        except _MovedOut:
            return self.state(allowance, now_ms)

    def close(self) -> None:
        """Unused slices are not given back: they return with the second."""
        if not self._closed:
            self._closed = True
            self._file.close()
