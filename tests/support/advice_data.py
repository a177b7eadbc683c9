"""Small data sets with known answers that no scenario was tuned on: other schemas, other forms of
time, amounts beside names, with and without a workload."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from armillary.advisor.workload.targets import Targets

Item = dict[str, Any]
GB = 1e9
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
WORDS = ("pump", "valve", "order", "late", "customer", "called", "invoice", "return", "damaged")


@dataclass(frozen=True, slots=True)
class Known:
    """`best` are patterns of keys that may win; `rejected` are keys and a word of their reasons."""

    make: Callable[[Random, int, datetime], Item]
    best: tuple[str, ...]
    operations: list[Item] | None = None
    targets: Targets = field(default_factory=Targets)
    rejected: dict[str, str] = field(default_factory=dict)
    step_seconds: float = 90.0
    count: int = 2_400

    def items(self, seed: int) -> list[Item]:
        random = Random(seed)
        steps = range(self.count)
        return [
            self.make(random, n, BEGIN + timedelta(seconds=self.step_seconds * n)) for n in steps
        ]


def query(rate: float, where: str) -> Item:
    return {"kind": "query", "rate": rate, "text": f"SELECT * FROM c WHERE {where}"}


def create(rate: float) -> Item:
    return {"kind": "create", "rate": rate}


def uid(random: Random) -> str:
    return f"{random.getrandbits(96):024x}"


def prose(random: Random) -> str:
    return " ".join(random.choices(WORDS, k=random.randint(5, 12)))


def iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")


def _radio(r: Random, n: int, at: datetime) -> Item:
    return {
        "id": uid(r), "mac": f"{r.randrange(300):06x}", "yyyymmdd": at.strftime("%Y%m%d"),
        "us": at.strftime("%m/%d/%Y"), "clock": at.strftime("%H:%M"), "rssi": -r.randint(30, 90),
    }  # fmt: skip


def _pump(r: Random, n: int, at: datetime) -> Item:
    return {
        "id": uid(r), "pump": f"pump-{r.randrange(300)}", "ts": iso(at), "hour": at.hour,
        "weekday": at.strftime("%A"), "batch": int(at.timestamp() // 1_800), "flow": r.random(),
    }  # fmt: skip


def _machine(r: Random, n: int, at: datetime) -> Item:
    state = r.choice(["ok", "warn", "err"])
    return {"id": str(n), "machine": f"m{r.randrange(40)}", "when": int(at.timestamp()), "s": state}


def _order(r: Random, n: int, at: datetime) -> Item:
    customer = r.randrange(700)
    return {
        "id": f"o{n}", "customer": f"C{customer:06d}", "total": r.randint(500, 900),
        "price": f"{r.randint(1, 40)}.{r.randint(0, 99):02d}", "zip": f"{10_000 + customer % 90}",
        "page": f"https://shop.example/{r.randrange(800)}", "note": prose(r),
        "status": r.choice(["new", "paid", "sent", "done"]), "gift": r.random() < 0.1,
        "at": iso(at), "currency": "EUR",
    }  # fmt: skip


def _match(r: Random, n: int, at: datetime) -> Item:
    return {
        "id": uid(r), "player": f"pl{r.randrange(600)}", "score": r.randint(0, 700),
        "kills": r.randint(0, 30), "won": r.random() < 0.1, "at": iso(at),
    }  # fmt: skip


def _person(r: Random, n: int, at: datetime) -> Item:
    return {
        "id": uid(r), "email": f"{r.choice(WORDS)}{n}@{r.choice(WORDS)}.example",
        "age": r.randint(18, 90), "visits": r.randint(0, 400), "city": f"Town {r.randrange(45)}",
        "plan": r.choice(["free", "pro"]), "since": iso(at), "bio": prose(r),
    }  # fmt: skip


def _sensor(r: Random, n: int, at: datetime) -> Item:
    sensor = r.randrange(500)
    return {
        "id": uid(r), "sensor": sensor, "site": f"S{sensor % 15}", "value": r.randint(0, 600),
        "at": int(at.timestamp() * 1000),
    }  # fmt: skip


def _trip(r: Random, n: int, at: datetime) -> Item:
    return {
        "id": uid(r), "day": at.strftime("%Y-%m-%d"), "car": f"{r.randrange(1_500) * 7_919:017X}",
        "km": r.randint(1, 300_000), "speed": r.randint(0, 180),
    }  # fmt: skip


def _action(r: Random, n: int, at: datetime) -> Item:
    giant = r.random() < 0.6
    tenant = "acme" if giant else f"t{r.randrange(120)}"
    user = f"{tenant}-{r.randrange(700 if giant else 8)}"
    action = r.choice(["view", "edit", "save"])
    return {"id": uid(r), "tenant": tenant, "user": user, "action": action, "at": iso(at)}


def _ticket(r: Random, n: int, at: datetime) -> Item:
    ticket = n // 3
    return {
        "id": f"T{ticket}", "account": f"a{ticket * 7 % 400}", "assignee": f"g{r.randrange(150)}",
        "status": ["open", "pending", "solved"][n % 3], "at": iso(at),
    }  # fmt: skip


def _visit(r: Random, n: int, at: datetime) -> Item:
    found: Item = {"id": uid(r), "shopper": f"s{r.randrange(500)}", "at": iso(at)}
    if r.random() < 0.6:
        found["referrer"] = f"r{r.randrange(900)}"
    return {**found, "coupon": None if r.random() < 0.8 else f"c{n}", "basket": [{"sku": "k"}]}


BUSY = Targets(throughput_ru=40_000)
TIMES = {"/yyyymmdd": "Heat", "/us": "Heat", "/clock": "Heat"}
FOLLOW = {"/hour": "Heat", "/weekday": "Heat", "/batch": "Heat", "/ts": "Heat"}

WITH_WORKLOAD: dict[str, Known] = {
    "dates in other forms": Known(
        _radio, ("/mac",),
        [create(4_000), query(200, "c.mac = @m"), query(5, "c.yyyymmdd = @d AND c.us = @u")],
        BUSY, TIMES,
    ),
    "values that follow time": Known(
        _pump, ("/pump",), [create(5_000), query(200, "c.pump = @p"), query(20, "c.batch = @b")],
        BUSY, FOLLOW,
    ),
    "few machines that fill up": Known(
        _machine, ("/machine,/*", '/machine+".*'),
        [create(3_000), query(100, "c.machine = @m AND c.when BETWEEN @a AND @b")],
        Targets(throughput_ru=40_000, growth_bytes_day=20 * GB),
        {"/machine": "20 GB", "/when": "Heat", "/s": "Cardinality"},
    ),
    "a query without text": Known(
        _order, ("/customer",),
        [create(300), {"kind": "query", "rate": 2_000, "by": ["/customer"], "comment": "mine"}],
        BUSY, {"/status": "Cardinality", "/gift": "Cardinality", "/at": "Heat"},
    ),
    "a car by its day": Known(
        _trip, ('/day+"."+hash(/car,415)',),
        [create(9_000), {"kind": "read", "rate": 900, "by": ["/day", "/car", "/id"]},
         query(20, "c.day = @d")],
        Targets(throughput_ru=100_000), {"/day": "Heat"}, step_seconds=300.0,
    ),
    "one giant tenant": Known(
        _action, ("/tenant,/user*", '/tenant+"."+hash(/user*'),
        [create(1_500), query(400, "c.tenant = @t AND c.user = @u"), query(150, "c.tenant = @t")],
        Targets(throughput_ru=50_000, storage_bytes=400 * GB),
        {"/tenant": "Heat", "/action": "Cardinality"},
    ),
    "versions of a ticket": Known(
        _ticket, ("/account",),
        [{"kind": "upsert", "rate": 500}, query(600, "c.account = @a"),
         query(900, "c.assignee = @a")],
        BUSY, {"/assignee": "Immutability"},
    ),
    "a key that many lack": Known(
        _visit, ("/shopper",),
        [create(500), query(1_200, "c.referrer = @r"), query(1_000, "c.shopper = @s")],
        BUSY, {"/referrer": "Presence", "/coupon": "Presence"},
    ),
}  # fmt: skip

WITHOUT_WORKLOAD: dict[str, Known] = {
    "amounts beside customers": Known(_order, ("/customer",), rejected={"/status": "Cardinality"}),
    "scores beside players": Known(_match, ("/player",), rejected={"/won": "Cardinality"}),
    "people are things themselves": Known(_person, ("/id",), rejected={"/plan": "Cardinality"}),
    "numbers that name sensors": Known(_sensor, ("/sensor",), rejected={"/at": "Heat"}),
    "times of all kinds": Known(_radio, ("/mac",), rejected=TIMES),
}
