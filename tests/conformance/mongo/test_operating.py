"""The MongoDB API beside its protocol, through PyMongo: faults, throttling, keys, metrics. Without
these tests a collection would be a stranger to the tools of every other API."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.errors import BulkWriteError, OperationFailure
from tests.support.mongo import connected, make_service, serving, uri

from armillary.api.control.metrics import exposition, samples
from armillary.api.core.gateway import Gateway
from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings
from armillary.api.mongo.service import Service
from armillary.api.mongo.settings import Settings
from armillary.clock import VirtualClock
from armillary.engine.memory import MemoryEngine
from armillary.partition.budgets.ledger import LocalLedger
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.controls import FaultRecord
from armillary.store.commands import HANDLERS
from armillary.store.throughput.meter import Enforce, Meter

SECONDARY = "c2Vjb25kYXJ5"


def login(address: str) -> MongoClient[dict[str, Any]]:
    return MongoClient(address, serverSelectionTimeoutMS=60_000)


def metered(enforce: Enforce, **settings: Any) -> Service:
    engine = MemoryEngine(HANDLERS, clock=VirtualClock())
    meter = Meter(engine, LocalLedger(enforce), enforce=enforce)
    gateway = Gateway(AccountStore(engine, random=Random(1), meter=meter))
    return Service(gateway, Settings(require_login=False, **settings))


def test_faults_strike_by_the_kind_of_command() -> None:
    service = make_service()
    with connected(service, retryWrites=False, retryReads=False) as client:
        people = client.shop.people
        people.insert_one({"_id": 1})
        people.find_one({"_id": 1})  # later ones have a template
        service.gateway.shared.set_faults([FaultRecord("429", "create", value=250, times=1)])
        assert people.find_one({"_id": 1}) == {"_id": 1}
        with pytest.raises(OperationFailure) as caught:
            people.insert_one({"_id": 2})
        assert caught.value.code == 16500
        assert "RetryAfterMs=250" in str(caught.value)
        people.insert_one({"_id": 2})
        service.gateway.shared.set_faults([FaultRecord("503", "query", times=1)])
        with pytest.raises(OperationFailure):
            people.find_one({"_id": 1})
        assert people.find_one({"_id": 1}) == {"_id": 1}


def test_a_throttled_collection_says_when_to_come_back() -> None:
    with connected(metered("on"), retryWrites=False, retryReads=False) as client:
        client.shop.command(
            {"customAction": "CreateCollection", "collection": "small", "offerThroughput": 400}
        )
        with pytest.raises((OperationFailure, BulkWriteError)) as caught:  # time stands still
            for number in range(200):
                client.shop.small.insert_one({"_id": number, "text": "x" * 500})
        assert "16500" in str(caught.value) or caught.value.code == 16500
        assert "RetryAfterMs" in str(caught.value)
        with pytest.raises(OperationFailure) as read:
            client.shop.small.find_one({"_id": 0})
        assert read.value.code == 16500


def test_every_key_of_the_account_is_a_password() -> None:
    keys = GatewaySettings(keys=(EMULATOR_KEY, SECONDARY))
    gateway = Gateway(AccountStore(MemoryEngine(HANDLERS), random=Random(1)), keys)
    with serving(Service(gateway, Settings())) as port:
        for key in (EMULATOR_KEY, SECONDARY):
            with login(uri(port, key=key)) as client:
                client.shop.people.insert_one({"key": key})
                assert client.shop.people.count_documents({"key": key}) == 1


def test_metrics_count_what_commands_consume() -> None:
    service = metered("report")
    charged = 0.0
    with connected(service, maxPoolSize=1) as client:
        people = client.shop.people
        client.shop.create_collection("people")
        for number in range(3):
            people.insert_one({"_id": number, "text": "x"})
            charged += client.shop.command("getLastRequestStatistics")["RequestCharge"]
            people.find_one({"_id": number})
            charged += client.shop.command("getLastRequestStatistics")["RequestCharge"]
        people.count_documents({})
        charged += client.shop.command("getLastRequestStatistics")["RequestCharge"]
        text = exposition(samples(service.gateway))
    counted = [line for line in text.splitlines() if line.startswith("TotalRequestUnits{")]
    found = sum(float(one.split()[-1]) for one in counted if 'CollectionName="people"' in one)
    assert found == pytest.approx(charged, abs=0.1), counted
