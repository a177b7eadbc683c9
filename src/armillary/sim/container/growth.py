"""How much is stored at each moment.

    1TB/day       so much more in every day
    2%/day        so much of what there is
    to:100TB      evenly, to be there at the end
    exp:100TB     by the same factor in every hour, to be there at the end

With a time to live, what was written that long ago expires. What is there at the beginning is then
taken for written evenly over one such time before.
"""

import math
from dataclasses import dataclass

from armillary.errors import BadInput
from armillary.sim.quantities import parse_bytes, parse_seconds, parse_share

FORMS = "1TB/day, 2%/day, to:100TB or exp:100TB"


@dataclass(frozen=True, slots=True)
class Growth:
    start_bytes: float
    per_second: float = 0.0
    """Linear."""
    rate: float = 0.0
    """Exponential: of what there is, per second."""
    ttl_s: float = math.inf

    def written(self, t: float) -> float:
        """All bytes written until `t`, those of the beginning included."""
        if t < 0:
            return max(0.0, self.start_bytes * (1 + t / self.ttl_s))
        if self.rate:
            return self.start_bytes * math.exp(self.rate * t)
        return self.start_bytes + self.per_second * t

    def expired(self, t: float) -> float:
        """Of them, those past their time to live."""
        return 0.0 if math.isinf(self.ttl_s) else self.written(t - self.ttl_s)

    def live(self, t: float) -> float:
        return self.written(t) - self.expired(t)


def parse_growth(text: str, start_bytes: float, end_s: float, ttl_s: float | None) -> Growth:
    ttl = math.inf if ttl_s is None else ttl_s
    kind, _, value = text.strip().partition(":")
    if kind in ("to", "exp") and value:
        target = parse_bytes(value, "The growth")
        if target < start_bytes:
            raise BadInput(
                f"The growth {text!r} ends below the {start_bytes:g} bytes it begins with."
            )
        if kind == "to":
            return Growth(start_bytes, per_second=(target - start_bytes) / end_s, ttl_s=ttl)
        if start_bytes <= 0:
            raise BadInput("Exponential growth needs something to begin with: give --storage.")
        return Growth(start_bytes, rate=math.log(target / start_bytes) / end_s, ttl_s=ttl)
    amount, slash, period = text.strip().partition("/")
    if text.strip() in ("", "0", "none"):
        return Growth(start_bytes, ttl_s=ttl)
    if not slash:
        raise BadInput(f"The growth is {text!r}; it has to be like {FORMS}.")
    seconds = parse_seconds(f"1{period.strip()}", "The period of the growth")
    if amount.strip().endswith("%"):
        share = parse_share(amount, "The growth")
        return Growth(start_bytes, rate=math.log1p(share) / seconds, ttl_s=ttl)
    return Growth(start_bytes, per_second=parse_bytes(amount, "The growth") / seconds, ttl_s=ttl)
