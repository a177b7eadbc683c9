"""The LMDB engine against raw `lmdb`: get, the point read, scan, and durable groups of puts."""

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import lmdb
from bench.report import Report, folder, rate

from armillary.engine.base import META_KEY, Command, Handler, Writer
from armillary.engine.lmdb.engine import LmdbEngine

ROWS = 100_000
SPACE = 1
GROUP = 32
PUTS = 14


def put_rows(tx: Writer, data: list[tuple[bytes, bytes]]) -> None:
    tx.put_many(data)


HANDLERS = {"put": Handler(put_rows)}


def main() -> None:
    report = Report("engine")
    with folder() as ours, folder() as theirs:
        engine = LmdbEngine(ours, HANDLERS)
        engine.create_space(SPACE, [(META_KEY, b"meta" * 30)])
        raw = lmdb.open(str(theirs), map_size=1 << 36, max_dbs=4)
        db = raw.open_db(b"space")
        keys = [b"\x11" + number.to_bytes(8, "big") for number in range(ROWS)]
        for start in range(0, ROWS, 1000):
            rows = [(key, b"v" * 700) for key in keys[start : start + 1000]]
            engine.run(SPACE, Command("put", rows))
            with raw.begin(write=True) as txn:
                for key, value in rows:
                    txn.put(key, value, db=db)
        with raw.begin(write=True) as txn:
            txn.put(META_KEY, b"meta" * 30, db=db)
            txn.put(b"\x21a", keys[5][1:], db=db)
        engine.run(SPACE, Command("put", [(b"\x21a", keys[5][1:])]))
        _reads(report, engine, raw, db, keys)
        _scans(report, engine, raw, db)
        _writes(report, engine, raw, db)
        engine.close()
        raw.close()


def _reads(report: Report, engine: LmdbEngine, raw: Any, db: Any, keys: list[bytes]) -> None:
    def raw_via() -> int:
        for _ in range(1000):
            txn = raw.begin(db=db)
            txn.get(META_KEY)
            found = txn.get(b"\x21a")
            txn.get(b"\x11" + found)
            txn.abort()
        return 1000

    def our_via() -> int:
        for _ in range(1000):
            engine.read_via(SPACE, b"\x21a", b"\x11")
        return 1000

    theirs, ours = rate(raw_via), rate(our_via)
    report.line("point read: begin, meta and two gets", ours, raw=theirs, ratio=ours / theirs)

    some = random.Random(1).choices(keys, k=1000)

    def raw_get() -> int:
        with raw.begin(db=db) as txn:
            for key in some:
                txn.get(key)
        return len(some)

    def our_get() -> int:
        with engine.read(SPACE) as reader:
            for key in some:
                reader.get(key)
        return len(some)

    theirs, ours = rate(raw_get), rate(our_get)
    report.line("get inside a snapshot", ours, raw=theirs, ratio=ours / theirs)


def _scans(report: Report, engine: LmdbEngine, raw: Any, db: Any) -> None:
    def raw_scan() -> int:
        with raw.begin(db=db) as txn, txn.cursor() as cursor:
            cursor.set_range(b"\x11")
            return sum(1 for _ in islice(cursor.iternext(), ROWS))

    def our_scan() -> int:
        with engine.read(SPACE) as reader:
            return sum(1 for _ in reader.scan(b"\x11", b"\x12"))

    theirs, ours = rate(raw_scan), rate(our_scan)
    report.line("scan of 700-byte rows", ours, unit="rows/s", raw=theirs, ratio=ours / theirs)


def _groups(seed: int, prefix: bytes) -> Iterator[list[list[tuple[bytes, bytes]]]]:
    chance = random.Random(seed)
    while True:
        yield [
            [(prefix + chance.randbytes(24), chance.randbytes(40)) for _ in range(PUTS)]
            for _ in range(GROUP)
        ]


def _writes(report: Report, engine: LmdbEngine, raw: Any, db: Any) -> None:
    groups = _groups(1, b"\x51")

    def raw_put() -> int:
        group = next(groups)
        with raw.begin(write=True) as txn:
            for rows in group:
                for key, value in rows:
                    txn.put(key, value, db=db)
        return GROUP

    def our_put() -> int:
        futures = [engine.submit(SPACE, Command("put", rows)) for rows in next(groups)]
        for future in futures:
            future.result()
        return GROUP

    theirs, ours = rate(raw_put), rate(our_put)
    report.line(
        f"durable commands of {PUTS} scattered puts, {GROUP} at a time",
        ours,
        raw=theirs,
        ratio=ours / theirs,
    )


if __name__ == "__main__":
    main()
