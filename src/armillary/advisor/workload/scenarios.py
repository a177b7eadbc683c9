"""Worked examples with known answers, from a seed: what `--scenario` prints and what tests check.

Each scenario is data, a workload and targets, and the key that an experienced person would choose.
They stand for the patterns of the documents: time series, multi-tenancy, read-heavy and write-heavy
containers. Names of properties are arguments, so that a test can show that they decide nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from armillary.advisor.workload.model import Workload, parse_workload
from armillary.advisor.workload.targets import Targets
from armillary.errors import BadInput
from armillary.partition.provisioning.partitions import GB

Item = dict[str, Any]
START: Final = datetime(2026, 3, 1, tzinfo=UTC)
ITEMS_DEFAULT: Final = 20_000


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    about: str
    lesson: str
    items: Callable[[Random, int], Iterator[Item]]
    operations: list[dict[str, Any]]
    targets: Targets
    best: tuple[str, ...]
    """Keys that are right; `*` at the end stands for any ending."""

    def workload(self) -> Workload:
        return parse_workload({"operations": self.operations})

    def data(self, seed: int, count: int = ITEMS_DEFAULT) -> list[Item]:
        return list(self.items(Random(seed), count))


def scenario(name: str) -> Scenario:
    if name not in SCENARIOS:
        raise BadInput(f"There is no scenario '{name}'; there are {', '.join(SCENARIOS)}.")
    return SCENARIOS[name]


def _query(rate: float, where: str, **more: Any) -> dict[str, Any]:
    return {"kind": "query", "rate": rate, "text": f"SELECT * FROM c WHERE {where}", **more}


def _id(random: Random) -> str:
    return f"{random.getrandbits(96):024x}"


def _telemetry(random: Random, count: int) -> Iterator[Item]:
    for number in range(count):
        at = START + timedelta(seconds=20 * 86_400 * number / count)
        yield {
            "id": _id(random),
            "deviceId": f"device-{random.randrange(2_500):05d}",
            "date": at.strftime("%Y-%m-%d"),
            "at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "site": f"site-{random.randrange(12)}",
            "temperature": round(random.gauss(20, 5), 2),
            "humidity": round(random.random(), 3),
        }


def _tenants(random: Random, count: int) -> Iterator[Item]:
    for _ in range(count):
        giant = random.random() < 0.45
        tenant = 0 if giant else 1 + int(random.paretovariate(0.7)) % 400
        users = 4_000 if giant else 25
        user = random.randrange(users)
        yield {
            "id": _id(random),
            "tenantId": f"tenant-{tenant:04d}",
            "userId": f"user-{tenant:04d}-{user:05d}",
            "kind": random.choice(["note", "task", "file", "event"]),
            "title": "x" * random.randrange(20, 200),
        }


def _orders(random: Random, count: int) -> Iterator[Item]:
    for number in range(count):
        at = START + timedelta(minutes=number)
        yield {
            "id": _id(random),
            "orderNumber": 100_000 + number,
            "customerId": f"customer-{int(random.paretovariate(1.1) * 40) % 3_000:05d}",
            "orderDate": at.strftime("%Y-%m-%d"),
            "country": random.choice(["DE", "FR", "US", "JP", "BR", "IN", "GB"]),
            "status": random.choice(["open", "paid", "sent", "done"]),
            "total": round(random.random() * 500, 2),
            "lines": [{"sku": random.randrange(900), "count": 1}] * random.randrange(1, 6),
        }


def _tickets(random: Random, count: int) -> Iterator[Item]:
    for _ in range(count):
        yield {
            "id": _id(random),
            "status": random.choices(["new", "open", "waiting", "closed"], [1, 2, 2, 15])[0],
            "accountId": f"account-{random.randrange(1_800):05d}",
            "priority": random.randrange(1, 4),
            "subject": "y" * random.randrange(10, 80),
        }


def _clicks(random: Random, count: int) -> Iterator[Item]:
    for number in range(count):
        at = START + timedelta(seconds=number / 8)
        yield {
            "id": _id(random),
            "timestamp": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "sessionId": f"s-{random.randrange(5_000):06d}",
            "page": f"/page/{random.randrange(60)}",
            "agent": random.choice(["firefox", "chrome", "safari"]),
        }


def _trips(random: Random, count: int) -> Iterator[Item]:
    for number in range(count):
        at = START + timedelta(seconds=10 * 86_400 * number / count)
        yield {
            "id": _id(random),
            "date": at.strftime("%Y-%m-%d"),
            "vin": f"1HGCM8263{random.randrange(6_000):08d}",
            "speed": round(random.random() * 130, 1),
            "position": {"lat": round(random.random(), 5), "lon": round(random.random(), 5)},
        }


def _logs(random: Random, count: int) -> Iterator[Item]:
    for number in range(count):
        at = START + timedelta(seconds=7 * 86_400 * number / count)
        host = random.randrange(1_500)
        yield {
            "id": _id(random),
            "host": f"web-{host:04d}.example",
            "process": f"web-{host:04d}/{1_000 + random.randrange(30)}",
            "day": at.strftime("%Y-%m-%d"),
            "at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "level": random.choices(["info", "warn", "error"], [90, 8, 2])[0],
            "message": "m" * random.randrange(40, 300),
        }


def _profiles(random: Random, count: int) -> Iterator[Item]:
    for _ in range(count):
        yield {
            "id": _id(random),
            "country": random.choice(["DE", "FR", "US", "JP", "BR"]),
            "plan": random.choice(["free", "plus"]),
            "settings": {"theme": random.choice(["dark", "light"]), "size": random.randrange(9)},
            "score": round(random.random(), 4),
        }


SCENARIOS: Final[dict[str, Scenario]] = {
    one.name: one
    for one in (
        Scenario(
            "telemetry",
            "Devices report all day; people look at one device at a time.",
            "Time series: a date as key takes every write of a day in one partition; the device "
            "spreads them and still answers its own questions.",
            _telemetry,
            [
                {"kind": "create", "rate": 6_000},
                _query(400, "c.deviceId = @d AND c.at > @from"),
                _query(20, "c.deviceId = @d AND c.date = @day"),
                _query(2, "c.date = @day AND c.site = @s"),
            ],
            Targets(throughput_ru=90_000, storage_bytes=500 * GB, growth_bytes_day=5 * GB),
            ("/deviceId",),
        ),
        Scenario(
            "tenants",
            "Many tenants in one container; one of them has nearly half of the data.",
            "Multi-tenancy: the tenant alone is too large for one logical partition; a "
            "hierarchical key keeps its queries together and lets it grow.",
            _tenants,
            [
                {"kind": "create", "rate": 1_500},
                {"kind": "read", "rate": 2_000, "by": ["/tenantId", "/userId", "/id"]},
                _query(500, "c.tenantId = @t AND c.userId = @u"),
                _query(100, "c.tenantId = @t AND c.kind = @k"),
            ],
            Targets(throughput_ru=80_000, storage_bytes=400 * GB),
            ("/tenantId,/userId", '/tenantId+"."+hash(/userId*', "/tenantId,/userId,/id"),
        ),
        Scenario(
            "orders",
            "A shop: orders are written once and read by their customer.",
            "Read-heavy: the property that most queries fix is the key, if it has enough values.",
            _orders,
            [
                {"kind": "create", "rate": 300},
                _query(2_500, "c.customerId = @c"),
                {"kind": "read", "rate": 1_500, "by": ["/customerId", "/id"]},
                _query(10, "c.orderDate = @d"),
            ],
            Targets(throughput_ru=180_000, storage_bytes=300 * GB),
            ("/customerId",),
        ),
        Scenario(
            "status",
            "Support tickets; half of the queries ask for one of four states.",
            "Cardinality: four values can't fill ten partitions, however often they are asked for.",
            _tickets,
            [
                {"kind": "create", "rate": 400},
                _query(600, "c.status = @s"),
                _query(900, "c.accountId = @a"),
                {"kind": "read", "rate": 600, "by": ["/accountId", "/id"]},
            ],
            Targets(throughput_ru=110_000, storage_bytes=200 * GB),
            ("/accountId",),
        ),
        Scenario(
            "clicks",
            "A stream of clicks, eight a second in the sample and thousands in production.",
            "Heat: a timestamp has many values, but all writes of one moment have the same.",
            _clicks,
            [
                {"kind": "create", "rate": 9_000},
                _query(300, "c.sessionId = @s"),
                _query(30, "c.timestamp >= @from AND c.timestamp < @to"),
            ],
            Targets(throughput_ru=150_000, storage_bytes=800 * GB),
            ("/sessionId",),
        ),
        Scenario(
            "vehicles",
            "Positions of cars, a container of 100,000 RU/s and all writes on the date of today; "
            "read by date and car, or by day as a whole.",
            "Write-heavy with a natural key that is hot: a suffix computed from the VIN makes 415 "
            "keys of each date, and a client that knows the VIN computes which.",
            _trips,
            [
                {"kind": "create", "rate": 9_000},
                {"kind": "read", "rate": 1_000, "by": ["/date", "/vin", "/id"]},
                _query(40, "c.date = @d AND c.vin = @v"),
                _query(20, "c.date = @d"),
            ],
            Targets(throughput_ru=100_000),
            ('/date+"."+hash(/vin,415)',),
        ),
        Scenario(
            "logs",
            "Lines of log of hosts and their processes, written all day; read for one host, or one "
            "process of it, at a time.",
            "Logs: the host or the process spreads what is written now; the day, and the level of "
            "a line, do not. Time belongs inside the item.",
            _logs,
            [
                {"kind": "create", "rate": 8_000},
                _query(200, "c.host = @h AND c.at > @from"),
                _query(60, "c.host = @h AND c.process = @p"),
                _query(2, "c.day = @d AND c.level = @l"),
            ],
            Targets(throughput_ru=120_000, storage_bytes=600 * GB, growth_bytes_day=5 * GB),
            ("/host",),
        ),
        Scenario(
            "profiles",
            "A key-value store: items are written and read by their id.",
            "Key-value: the id is as selective as a key can be, and every client knows it.",
            _profiles,
            [
                {"kind": "upsert", "rate": 500},
                {"kind": "read", "rate": 9_000, "by": ["/id"]},
                {"kind": "delete", "rate": 20, "by": ["/id"]},
            ],
            Targets(throughput_ru=30_000, storage_bytes=100 * GB),
            ("/id",),
        ),
    )
}


def matches(key: str, best: tuple[str, ...]) -> bool:
    return any(key == one or (one.endswith("*") and key.startswith(one[:-1])) for one in best)
