"""Two servers on one PostgreSQL: cursors, transactions, retryable writes and change streams begun
at one go on at the other."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from bson import Binary, Int64
from pymongo.errors import OperationFailure
from tests.conformance.mongo.test_server import Raw, opened, plain, snapshot_over, started
from tests.support.postgres import fresh_url


@pytest.mark.postgres
def test_what_one_server_began_another_goes_on_with(tmp_path: Path) -> None:
    url = fresh_url()
    with ExitStack() as stack:
        uris = [
            plain(stack.enter_context(started(tmp_path / f"{n}", "--engine", url))[1])
            for n in range(2)
        ]
        clients = [stack.enter_context(opened(uri)) for uri in uris]
        one, other = clients[0].shop, clients[1].shop

        # a cursor, batch by batch at both
        one.items.insert_many([{"_id": n, "a": -n} for n in range(40)])
        for command in (
            {"find": "items", "batchSize": 3},
            {"find": "items", "sort": {"a": 1}, "batchSize": 3},
        ):
            answer = one.command(command)["cursor"]
            found, at = answer["firstBatch"], 0
            while answer["id"]:
                at += 1
                more = {"getMore": Int64(answer["id"]), "collection": "items", "batchSize": 3}
                answer = (other if at % 2 else one).command(more)["cursor"]
                found += answer["nextBatch"]
            assert sorted(doc["_id"] for doc in found) == list(range(40))

        # a transaction: statements at both, the commit sent to both
        raws = [Raw(uri) for uri in uris]
        stack.callback(raws[0].close)
        stack.callback(raws[1].close)
        session: dict[str, Any] = {"lsid": {"id": Binary(os.urandom(16), 4)}}
        transaction = {**session, "txnNumber": Int64(1), "autocommit": False}
        first = {"insert": "items", "documents": [{"_id": "t0"}], **transaction}
        raws[0].run(first | {"startTransaction": True})
        raws[1].run({"insert": "items", "documents": [{"_id": "t1"}], **transaction})
        assert other.items.count_documents({"_id": {"$in": ["t0", "t1"]}}) == 0
        for raw in raws:
            raw.run({"commitTransaction": 1, **transaction}, "admin")
        assert one.items.count_documents({"_id": {"$in": ["t0", "t1"]}}) == 2

        snapshot_over(raws, other.items)

        # a write that is sent again, to the other server
        update = {"q": {"_id": "t0"}, "u": {"$inc": {"n": 1}}}
        for raw in raws:
            done = raw.run(
                {"update": "items", "updates": [update], **session, "txnNumber": Int64(2)}
            )
            assert done["nModified"] == 1
        assert one.items.find_one({"_id": "t0"}) == {"_id": "t0", "n": 1}

        # a change stream, asked for at both in turn
        watch = {"aggregate": "items", "cursor": {}, "pipeline": [{"$changeStream": {}}]}
        stream = one.command(watch)["cursor"]
        other.items.insert_one({"_id": "w"})
        events: list[Any] = []
        for at in range(200):
            more = {"getMore": Int64(stream["id"]), "collection": "items", "maxTimeMS": 100}
            events += (other if at % 2 else one).command(more)["cursor"]["nextBatch"]
            if events:
                break
        assert [event["documentKey"]["_id"] for event in events] == ["w"]
        other.command({"killCursors": "items", "cursors": [Int64(stream["id"])]})
        with pytest.raises(OperationFailure, match="not found") as gone:
            one.command({"getMore": Int64(stream["id"]), "collection": "items"})
        assert gone.value.code == 43

        # collections and indexes made at one are known at the other
        one.create_collection("later")
        other.later.create_index("email", unique=True)
        one.later.insert_one({"email": "a"})
        with pytest.raises(OperationFailure) as twice:
            one.later.insert_one({"email": "a"})
        assert twice.value.code == 11000
        other.later.drop()
        assert one.later.count_documents({}) == 0
