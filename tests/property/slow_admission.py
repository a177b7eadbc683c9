"""Admission as the reference writes it, boundary by boundary: the second opinion on `Budget`."""


class SlowBudget:
    def __init__(self, r: float, burst: bool) -> None:
        self.r, self.burst = r, burst
        self.b, self.bank, self.used, self.second = r, 0.0, 0.0, 0

    def step_to(self, now_ms: int) -> None:
        while self.second < now_ms // 1000:
            if self.burst and self.r < 3000:
                self.bank = min(300 * self.r, self.bank + max(0.0, self.b))
            self.b = self.r + min(0.0, self.b)
            self.used = 0.0
            self.second += 1

    def admit(self, now_ms: int) -> int | None:
        self.step_to(now_ms)
        if self.b > 0 or (self.burst and self.bank > 0 and self.used < 3000):
            return None
        to_next = 1000 - now_ms % 1000
        return max(1, to_next + 1000 * int(max(0.0, -self.b) // self.r))

    def charge(self, now_ms: int, cost: float) -> None:
        self.step_to(now_ms)
        self.b -= cost
        self.used += cost
        if self.b < 0 and self.burst:
            drawn = min(-self.b, self.bank, max(0.0, 3000 - self.r))
            self.bank -= drawn
            self.b += drawn
