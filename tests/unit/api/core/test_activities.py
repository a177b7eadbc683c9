"""Ids of answers are made many at a time: without this test two answers could have one id."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from armillary.api.core.activities import new_activity


def test_every_id_is_a_random_uuid_of_its_own() -> None:
    count = 700
    with ThreadPoolExecutor(4) as threads:
        batches = threads.map(lambda _: [new_activity() for _ in range(count)], range(4))
        made = [one for batch in batches for one in batch]
    assert len(set(made)) == 4 * count
    assert {(UUID(one).version, str(UUID(one)) == one) for one in made} == {(4, True)}
