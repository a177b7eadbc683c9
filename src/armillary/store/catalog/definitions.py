"""A container's definition: the JSON that comes in, checked and completed; the parts that are used.

In: the body of a create or replace. Out: `ContainerDefinition`, whose `document` is what goes out
and what the catalog keeps. Facts: nosql-rest 2.5 (defaults), 2.6 (limits); partitioning 5 (what
can't change).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from armillary.encoding.documents import check_name
from armillary.encoding.partition_key import (
    SYSTEM_KEY,
    PartitionKeyDefinition,
    check_unchanged,
    parse_definition,
)
from armillary.errors import BadInput
from armillary.keys import SyntheticKey
from armillary.limits import FEED_RETENTION_SECONDS_MAX, TTL_SECONDS_MAX
from armillary.store.catalog.policies import check_policy_replacement
from armillary.store.index.kinds.registry import described
from armillary.store.index.plan_cache import policy_json
from armillary.store.index.policy import parse_policy, parse_unique_keys, unique_keys_json
from armillary.store.items.expiry import TTL_OFF
from armillary.values import JSON

CONFLICT_DEFAULT: Final = {
    "mode": "LastWriterWins",
    "conflictResolutionPath": "/_ts",
    "conflictResolutionProcedure": "",
}
GEOSPATIAL_DEFAULT: Final = {"type": "Geography"}
ECHOED: Final = (
    "analyticalStorageTtl",
    "computedProperties",
    "vectorEmbeddingPolicy",
    "fullTextPolicy",
    "clientEncryptionPolicy",
    "mongo",
)


@dataclass(frozen=True, slots=True)
class ContainerDefinition:
    document: dict[str, JSON]
    partition_key: PartitionKeyDefinition
    default_ttl: int
    """0: time to live is off."""
    retention_s: int
    synthetic_key: SyntheticKey | None

    @property
    def id(self) -> str:
        return str(self.document["id"])

    def policy(self, model: str = "json") -> bytes:
        """What index entries are made by; a change of it means building them again."""
        document = self.document
        return policy_json(
            document["indexingPolicy"], document["uniqueKeyPolicy"], described(document), model
        )


def parse_container(body: JSON) -> ContainerDefinition:
    if not isinstance(body, dict):
        raise BadInput("A container is defined by a JSON object.")
    if "id" not in body:
        raise BadInput(
            "The input content is invalid because the required properties - 'id; ' - are missing"
        )
    check_name(body["id"])
    partition_key = (
        parse_definition(body["partitionKey"]) if body.get("partitionKey") else SYSTEM_KEY
    )
    policy = parse_policy(body.get("indexingPolicy"))
    document: dict[str, JSON] = {
        "id": body["id"],
        "indexingPolicy": policy.to_json(),
        "partitionKey": partition_key.to_json(),
        "uniqueKeyPolicy": unique_keys_json(parse_unique_keys(body.get("uniqueKeyPolicy"))),
        "conflictResolutionPolicy": _conflicts(body.get("conflictResolutionPolicy")),
        "geospatialConfig": body.get("geospatialConfig") or GEOSPATIAL_DEFAULT,
    }
    default_ttl = _default_ttl(body.get("defaultTtl"))
    if default_ttl != TTL_OFF:
        if policy.mode == "none":
            raise BadInput("A container with indexingMode 'none' can't have a defaultTtl.")
        document["defaultTtl"] = default_ttl
    retention_s = 0
    if body.get("changeFeedPolicy") is not None:
        retention_s = _retention(body["changeFeedPolicy"])
        document["changeFeedPolicy"] = body["changeFeedPolicy"]
    synthetic_key = None
    if body.get("syntheticKey") is not None:
        synthetic_key = SyntheticKey.from_json(body["syntheticKey"])
        _check_synthetic(synthetic_key, partition_key)
        document["syntheticKey"] = synthetic_key.to_json()
    document |= {name: body[name] for name in ECHOED if body.get(name) is not None}
    return ContainerDefinition(document, partition_key, default_ttl, retention_s, synthetic_key)


def is_collection(definition: Mapping[str, Any]) -> bool:
    """Whether a container's definition is that of a MongoDB collection."""
    return isinstance(definition.get("mongo"), dict)


def check_replacement(old: ContainerDefinition, new: ContainerDefinition) -> None:
    """The things a container keeps for life."""
    check_unchanged(old.partition_key, new.partition_key)
    if old.id != new.id:
        raise BadInput("The id of a container can't be changed.")
    for name, what in (("uniqueKeyPolicy", "unique keys"), ("syntheticKey", "synthetic key")):
        if old.document.get(name) != new.document.get(name):
            raise BadInput(f"The {what} of a container can't be changed after it was created.")
    check_policy_replacement(old.document, new.document)


def _conflicts(given: Any) -> Any:
    """With all its members, as the service gives it back."""
    if not isinstance(given, dict):
        return given or CONFLICT_DEFAULT
    is_custom = str(given.get("mode")).lower() == "custom"
    default = {"mode": "Custom", "conflictResolutionPath": ""} if is_custom else {}
    known = {name: value for name, value in given.items() if value is not None}
    return {**CONFLICT_DEFAULT, **default, **known}


def _default_ttl(value: Any) -> int:
    if value is None:
        return TTL_OFF
    if type(value) is not int or not (value == -1 or 1 <= value <= TTL_SECONDS_MAX):
        raise BadInput(
            f"The defaultTtl '{value}' is invalid. It must be -1 or between 1 and "
            f"{TTL_SECONDS_MAX} seconds; leave it out to switch time to live off."
        )
    return value


def _retention(policy: Any) -> int:
    """`{"retentionDuration": minutes}`: how long old versions and deletes stay in the feed."""
    minutes = policy.get("retentionDuration") if isinstance(policy, dict) else None
    longest = FEED_RETENTION_SECONDS_MAX // 60
    if type(minutes) is not int or not 0 <= minutes <= longest:
        raise BadInput(
            "The changeFeedPolicy must be an object with 'retentionDuration', "
            f"a number of minutes between 0 and {longest}."
        )
    return minutes * 60


def _check_synthetic(key: SyntheticKey, partition_key: PartitionKeyDefinition) -> None:
    if partition_key.paths != (key.path,):
        raise BadInput("The synthetic key's path must be the container's one partition key path.")
