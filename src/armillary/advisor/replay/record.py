"""What a replay saw: request units by second and partition, refusals, keys, waits.

Counting only; what it means is in `replay_result.py`. Keys are kept in a sketch of bounded size.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from armillary.partition.usage.space_saving import SpaceSaving

KEYS_KEPT: Final = 1000
WAITS_KEPT: Final = 100_000


@dataclass(slots=True)
class TemplateCount:
    operations: float = 0.0
    ranges: float = 0.0
    """Physical partitions asked, in all."""
    ranges_max: int = 0
    ru: float = 0.0
    refused: float = 0.0


@dataclass(slots=True)
class Record:
    start_ms: float
    consumed: defaultdict[int, defaultdict[int, float]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(float))
    )
    """Range id → second since the start → RU."""
    offered: defaultdict[int, defaultdict[int, float]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(float))
    )
    """The same, had nothing been refused: each request where and when it first came."""
    refused: defaultdict[int, defaultdict[int, float]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(float))
    )
    """Range id → second → 429s."""
    budgets: dict[int, float] = field(default_factory=dict)
    """RU/s of every range there ever was; the last."""
    key_ru: SpaceSaving[str] = field(default_factory=lambda: SpaceSaving(KEYS_KEPT))
    templates: defaultdict[int, TemplateCount] = field(
        default_factory=lambda: defaultdict(TemplateCount)
    )
    operations: float = 0.0
    failed: float = 0.0
    """Gave up after the last retry."""
    full: float = 0.0
    """Writes to a logical partition that has reached its size: 403, no retry helps."""
    delayed: float = 0.0
    """Done, but not at once."""
    waits_ms: list[int] = field(default_factory=list)
    """Of those delayed, in the order in which they were done; bounded."""
    last_ms: float = 0.0

    def second(self, when_ms: float) -> int:
        return int((when_ms - self.start_ms) // 1000)

    def charge(self, ordinal: int, when_ms: float, ru: float) -> None:
        self.consumed[ordinal][self.second(when_ms)] += ru

    def refuse(self, ordinal: int, when_ms: float, times: float, template: int) -> None:
        self.refused[ordinal][self.second(when_ms)] += times
        self.templates[template].refused += times

    def done(self, times: float, waited_ms: int) -> None:
        if waited_ms:
            self.delayed += times
            if len(self.waits_ms) < WAITS_KEPT:
                self.waits_ms.append(waited_ms)
