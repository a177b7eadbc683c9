"""A pipeline of stages as one function. What reads or writes collections is asked of a `World`.

Adjacent `$sort` and `$limit` keep only what the limit needs. A first `$match` (and what follows it)
is left to the caller, who may find its rows by an index (`leading`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

from armillary.api.mongo.aggregate import joins
from armillary.api.mongo.aggregate.stages import STAGES, Rows, Stage, count_of, sort
from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.language import Language
from armillary.encoding.bson.values import is_text
from armillary.limits import MONGO_PIPELINE_STAGES_MAX

#: Native stages that Azure Cosmos DB does not list (section 14): refused in strict mode.
NATIVE: Final = frozenset(
    {
        "$bucket",
        "$bucketAuto",
        "$unionWith",
        "$graphLookup",
        "$documents",
        "$densify",
        "$fill",
        "$setWindowFields",
        "$listLocalSessions",
    }
)
LAST_ONLY: Final = ("$out", "$merge")
FIRST_ONLY: Final = (
    "$geoNear",
    "$changeStream",
    "$collStats",
    "$indexStats",
    "$documents",
    "$planCacheStats",
    "$currentOp",
    "$listSessions",
    "$listLocalSessions",
)
UNSUPPORTED: Final = (
    "$graphLookup",
    "$densify",
    "$fill",
    "$setWindowFields",
    "$search",
    "$listSessions",
    "$currentOp",
)
NOT_IN_FACET: Final = (
    "$out",
    "$merge",
    "$facet",
    "$geoNear",
    "$changeStream",
    "$collStats",
    "$indexStats",
)


class World(Protocol):
    """What a pipeline may do beyond its rows."""

    def rows(self, collection: str, query: dict[str, Any]) -> Iterable[dict[str, Any]]:
        """The documents of another collection of the same database."""
        ...

    def replace_collection(self, database: str, name: str, rows: Rows) -> None: ...

    def merge_into(self, argument: Any, rows: Rows, language: Language) -> None: ...


def split_stage(stage: Any) -> tuple[str, Any]:
    if not isinstance(stage, dict):
        raise MongoError(14, "Each element of the 'pipeline' array must be an object")
    if len(stage) != 1:
        raise MongoError(
            40323, "A pipeline stage specification object must contain exactly one field."
        )
    return next(iter(stage.items()))


def check_pipeline(
    pipeline: Any, language: Language, *, inside: str | None = None
) -> list[tuple[str, Any]]:
    if not isinstance(pipeline, list):
        raise MongoError(14, "'pipeline' option must be specified as an array")
    if len(pipeline) > MONGO_PIPELINE_STAGES_MAX:
        raise MongoError(
            7749501, f"Pipeline length must be no longer than {MONGO_PIPELINE_STAGES_MAX} stages."
        )
    stages = [split_stage(one) for one in pipeline]
    for at, (name, _) in enumerate(stages):
        known = name in STAGES or name in joins.STAGES or name in LAST_ONLY or name in FIRST_ONLY
        if name in UNSUPPORTED or not known or (language.strict and name in NATIVE):
            raise MongoError(40324, f"Unrecognized pipeline stage name: '{name}'")
        if name in LAST_ONLY and at != len(stages) - 1:
            raise MongoError(40601, f"{name} can only be the final stage in the pipeline")
        if name in FIRST_ONLY and at:
            raise MongoError(40602, f"{name} is only valid as the first stage in a pipeline.")
        if inside == "$facet" and name in NOT_IN_FACET:
            raise MongoError(40600, f"{name} is not allowed to be used within a $facet stage")
        if inside == "$lookup" and name in LAST_ONLY:
            raise MongoError(51047, f"{name} is not allowed within a $lookup's sub-pipeline")
    return stages


def compile_pipeline(
    pipeline: Any, language: Language, world: World, *, inside: str | None = None
) -> Stage:
    stages = check_pipeline(pipeline, language, inside=inside)
    made: list[Stage] = []
    for at, (name, argument) in enumerate(stages):
        if name == "$sort" and at + 1 < len(stages) and stages[at + 1][0] == "$limit":
            made.append(sort(argument, language, count_of("$limit", stages[at + 1][1], 1, 5107201)))
        else:
            made.append(_stage(name, argument, language, world))

    def run(rows: Rows) -> Iterator[dict[str, Any]]:
        found: Any = rows
        for stage in made:
            found = stage(found)
        return iter(found)

    return run


def _stage(name: str, argument: Any, language: Language, world: World) -> Stage:
    if name in STAGES:
        return STAGES[name](argument, language)
    if name in joins.STAGES:
        made: Stage = joins.STAGES[name](argument, language, world, compile_pipeline)
        return made
    if name == "$out":
        return _out(argument, world)
    if name == "$merge":

        def merge(rows: Rows) -> Iterator[dict[str, Any]]:
            world.merge_into(argument, rows, language)
            return iter(())

        return merge
    raise MongoError(40324, f"Unrecognized pipeline stage name: '{name}'")


def _out(argument: Any, world: World) -> Stage:
    if is_text(argument):
        database, name = "", argument
    elif isinstance(argument, dict) and is_text(argument.get("coll")):
        database, name = argument.get("db", ""), argument["coll"]
    else:
        raise MongoError(16990, "$out only supports a string or object argument")

    def run(rows: Rows) -> Iterator[dict[str, Any]]:
        world.replace_collection(database, name, rows)
        return iter(())

    return run


Compile = Callable[..., Stage]
