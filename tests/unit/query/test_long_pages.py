"""A page that takes longer than a snapshot may live goes on in another one. Without this, a filter
that leaves nearly nothing of a large partition ended with an error about an old snapshot."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

import armillary
from armillary.engine.base import Reader
from armillary.query.run import merge
from armillary.query.run.sql import plan_of, run_plan
from armillary.store.items.containers import ContainerStore

ITEMS = 1500
#: Nothing but the last; by a scan, with and without a compiled loop, and by key.
QUERIES = [
    f"SELECT VALUE c.n FROM c WHERE NOT IS_DEFINED(c.other) AND c.n + 0 >= {ITEMS - 1}",
    f"SELECT VALUE c.n FROM c WHERE RegexMatch(ToString(c.n), '^{ITEMS - 1}$')",
    f"SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n + 0 >= {ITEMS - 1}",
]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("key", [None, "a"])
def test_a_page_may_need_several_snapshots(
    monkeypatch: pytest.MonkeyPatch, text: str, key: str | None
) -> None:
    with armillary.open(":memory:") as account:
        container = account.create_database("d").create_container("c", "/pk")
        operations: list[Any] = [
            ("create", ({"id": f"{n}", "pk": "a", "n": n, "tags": [n]},)) for n in range(ITEMS)
        ]
        container.bulk(operations)
        store = account.store.container("d", "c")
        asked = (key,) if key is not None else None
        once = run_plan(store, plan_of(text, {}), {}, partition_key=asked)
        looks: list[float] = []
        look = ContainerStore.look

        def counted(self: Any, epk: bytes, read: Any, **options: Any) -> Any:
            def noted(state: Any, owner: Any, reader: Reader) -> Any:
                looks.append(1)
                return read(state, owner, reader)

            return look(self, epk, noted, **options)

        monkeypatch.setattr(merge, "QUERY_SNAPSHOT_SECONDS", 0.001)
        monkeypatch.setattr(ContainerStore, "look", counted)
        ticks = count()
        page = run_plan(
            store, plan_of(text, {}), {}, partition_key=asked, clock=lambda: next(ticks) / 1000
        )
        assert page.rows == once.rows == [ITEMS - 1]
        assert page.continuation is None
        assert len(looks) > 3
        # The item at which a snapshot ends may be read again.
        assert 0 <= page.metrics.retrieved_items - ITEMS <= len(looks)
        assert page.metrics.charge_ru() == pytest.approx(once.metrics.charge_ru(), rel=0.1)
