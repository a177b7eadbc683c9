"""What the MongoDB API has, from the tables that it works with: for the compatibility page."""

from __future__ import annotations

from typing import Final

from armillary.api.mongo.aggregate import joins, pipeline, stages
from armillary.api.mongo.aggregate.accumulators import ACCUMULATORS
from armillary.api.mongo.commands.table import COMMANDS, UNSUPPORTED
from armillary.api.mongo.expressions import compiled
from armillary.api.mongo.match.compiled import SUPPORTED as FILTERS
from armillary.api.mongo.update.apply import SUPPORTED as UPDATES

GAPS: Final = (
    "Collations: simple and English, strength 1 to 3; in strict mode, as in Azure Cosmos DB, they "
    "have no effect.",
    "A unique index is made only while its collection is empty, as in Azure Cosmos DB.",
    "A document has 2 MB at most, as stored; `hello` says 16 MB, as the service does.",
    "Views, time series, validators, capped collections as such, text indexes, `$where`, `$text` "
    "and `$jsonSchema` are refused.",
    "Change streams show the latest version of each document; deletes do not appear.",
    "A transaction reads the snapshot of its first statement. Of two that write one document the "
    "second gets 112 when it writes after the first has committed, else when it commits.",
    "A `hint` has to name an index and gives the order of a find without a sort; the plan chooses "
    "its indexes by itself. `min` and `max` choose by the keys of the hinted index.",
    "Sorts and groups hold 100 MB at most; past it the command fails with 146.",
)


def rows() -> list[tuple[str, str]]:
    """(what, names)"""
    stage_names = {*stages.STAGES, *joins.STAGES, *pipeline.LAST_ONLY, "$changeStream"}
    return [
        ("commands", _listed(COMMANDS)),
        ("commands that are refused", _listed(UNSUPPORTED)),
        ("query operators", _listed(FILTERS)),
        ("update operators", _listed(UPDATES)),
        ("stages", _listed(stage_names)),
        ("stages refused in strict mode", _listed(stage_names & pipeline.NATIVE)),
        ("accumulators", _listed(ACCUMULATORS)),
        ("expressions", _listed({*compiled.OPERATORS, *compiled.ARRAY_ACCUMULATORS})),
        ("expressions refused in strict mode", _listed(compiled.NATIVE)),
    ]


def _listed(names: object) -> str:
    assert hasattr(names, "__iter__")
    return " ".join(f"`{one}`" for one in sorted(names))
