"""The rings of the README. Without this test they could show something else than the text says."""

from __future__ import annotations

from xml.etree import ElementTree

from tools.ring_pictures import PARTITIONS, pictures


def test_the_bad_key_looks_bad_and_the_good_one_good() -> None:
    drawn = pictures()
    bad, good = (
        [one for one in ElementTree.fromstring(drawn[name]).iter() if one.get("data-id")]
        for name in ("ring-by-country.svg", "ring-by-device.svg")
    )
    assert len(bad) == len(good) == PARTITIONS
    assert sum(one.get("data-items") == "0" for one in bad) == 4
    assert sum(int(one.get("data-throttled", "0")) for one in bad) > 0
    assert all(int(one.get("data-items", "0")) > 200 for one in good)
    assert sum(int(one.get("data-throttled", "0")) for one in good) == 0
