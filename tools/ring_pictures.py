"""The rings of the README: the same readings under a bad and a good key. `make screenshots`.

Made by the same functions that draw `ring.svg` of a server, from an account in memory under a
stopped clock: the same pictures every time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import armillary
from armillary.clock import VirtualClock
from armillary.commands.demo.terminal import readings
from armillary.ring.model import read
from armillary.ring.svg import ring_svg

IMAGES: Final = Path(__file__).resolve().parents[1] / "docs" / "images"
KEYS: Final = (("by-country", "country"), ("by-device", "deviceId"))
PARTITIONS: Final = 8
THROUGHPUT: Final = 3_000
READINGS: Final = 3_000
PER_SECOND: Final = 60
PARTITION_BYTES: Final = 1_000_000
LOGICAL_BYTES: Final = 1_000_000


def pictures() -> dict[str, str]:
    """File name → SVG."""
    clock = VirtualClock()
    found = {}
    with armillary.open(
        ":memory:",
        clock=clock,
        seed=2018,
        enforce="on",
        housekeeping=False,
        partition_bytes=PARTITION_BYTES,
        logical_bytes=LOGICAL_BYTES,
    ) as account:
        home = account.create_database("telemetry")
        made = [
            home.create_container(
                name, f"/{key}", physical_partitions=PARTITIONS, throughput=THROUGHPUT
            )
            for name, key in KEYS
        ]
        items = list(readings(READINGS))
        for start in range(0, READINGS, PER_SECOND):
            group = items[start : start + PER_SECOND]
            for container in made:
                container.bulk([("create", (item,)) for item in group])  # refusals are the point
            clock.advance(0.5)
        for (name, _), container in zip(KEYS, made, strict=True):
            found[f"ring-{name}.svg"] = ring_svg(read(container.heat_report())) + "\n"
    return found


def main() -> None:
    for name, text in pictures().items():
        (IMAGES / name).write_text(text, "utf-8")
        print(f"docs/images/{name}  {len(text) / 1000:,.0f} KB")


if __name__ == "__main__":
    main()
