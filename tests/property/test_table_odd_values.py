"""Entities, filters and batches of the Table API that are well formed and odd inside: each is
answered as it asks or by an OData error, a batch does all or nothing, and what was accepted is read
again. Without this a type, a number or a name that no test thought of is answered 500.
`ARMILLARY_FUZZ_SEED` and `ARMILLARY_FUZZ_COMMANDS` choose others."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from random import Random
from typing import Any

import pytest
from tests.support.table import COSMOS, STORAGE, TableApi, entity_path, table_api
from tests.support.table_damage import Odd

from armillary.api.http.messages import Response
from armillary.api.table.flavours import Flavour

SEED = int(os.environ.get("ARMILLARY_FUZZ_SEED", "7"))
COUNT = int(os.environ.get("ARMILLARY_FUZZ_COMMANDS", "1200"))
BATCH_KIND = {"content-type": "multipart/mixed; boundary=batch_1"}
FRESH = 200
"""Requests that one table gets."""


def entities(api: TableApi) -> Any:
    return json.loads(api.ask("GET", "/tab()").body)["value"]


@pytest.mark.parametrize("flavour", [COSMOS, STORAGE], ids=["cosmos", "storage"])
def test_each_is_answered_by_the_protocol(
    flavour: Flavour, caplog: pytest.LogCaptureFixture
) -> None:
    random = Random(SEED)
    statuses: Counter[tuple[str, int]] = Counter()
    wrong: list[str] = []
    for _ in range(COUNT // FRESH):
        with table_api(flavour, table="tab") as api:
            api.ask("PUT", entity_path("tab", "p", "r"), {"n": 1, "Text": "x"})
            odd = Odd(random)
            for _ in range(FRESH):
                with caplog.at_level(logging.ERROR):
                    caplog.clear()
                    what, answer = ask(api, odd, random)
                statuses[what, answer.status] += 1
                problem = problem_of(answer)
                if caplog.records or problem:
                    wrong.append(
                        f"{what}: {problem} {answer.status} {answer.body[:300]!r}\n{caplog.text}"
                    )
    assert not wrong, "\n".join(wrong[:5])
    # The damage does not end at the door.
    for what, good in (("insert", 201), ("replace", 204), ("query", 200), ("batch", 202)):
        assert statuses[what, good] > COUNT / 200, (what, statuses)
        assert sum(n for (one, status), n in statuses.items() if one == what and status >= 400)


def ask(api: TableApi, odd: Odd, random: Random) -> tuple[str, Response]:
    match random.randrange(6):
        case 0 | 1:
            return "query", api.ask("GET", "/tab()?" + odd.options())
        case 2:
            keys = random.choice((None, ("p", f"i{random.randrange(9)}")))
            body = odd.entity(keys=keys).encode("utf-8", "surrogatepass")
            return "insert", api.ask("POST", "/tab", body)
        case 3 | 4:
            row = f"r{random.randrange(9)}"
            path = entity_path("tab", "p", row)
            method = random.choice(("PUT", "MERGE"))
            answer = api.ask(method, path, odd.entity(keys=("p", row)).encode())
            if answer.status == 204:
                read = api.ask("GET", path)
                assert read.status == 200, read
                assert json.loads(read.body)["RowKey"] == row
            return "replace", answer
        case _:
            before = entities(api)
            answer = api.ask("POST", "/$batch", odd.batch("tab"), BATCH_KIND)
            if b"HTTP/1.1 4" in answer.body or answer.status >= 400:
                assert entities(api) == before, "all or nothing"
            return "batch", answer


def problem_of(answer: Response) -> str:
    if answer.status >= 500 and answer.status != 501:
        return "a mistake of the server"
    if b"HTTP/1.1 50" in answer.body and b"HTTP/1.1 501" not in answer.body:
        return "a mistake of the server in a batch"
    if answer.status < 400:
        return ""
    error = json.loads(answer.body)["odata.error"]
    return "" if error["code"].isalpha() and error["message"]["value"] else "no error of OData"
