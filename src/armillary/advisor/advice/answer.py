"""The answer as plain values: what `--json` prints, and what the terminal and the page show."""

import math
from dataclasses import asdict
from typing import Any

from armillary.advisor.advice.advising import Advice, Ranked
from armillary.advisor.advice.explanation import caveats, consequence, cure, reasons
from armillary.advisor.advice.measures import Measures
from armillary.advisor.advice.official import official
from armillary.advisor.keys.pasting import (
    entity_text,
    migration_text,
    plain_function,
    python_text,
)
from armillary.advisor.workload.patterns import patterns
from armillary.advisor.workload.targets import Scale
from armillary.encoding.paths import format_path


def as_json(advice: Advice, name: str = "items") -> dict[str, Any]:
    first, current = advice.recommended, advice.current
    of_table = current is not None and current.of_table
    found: dict[str, Any] = _finite(
        {
            "recommended": {
                "key": first.candidate.name,
                "kind": first.candidate.kind,
                "definition": {"id": name} if of_table else first.candidate.container_json(name),
                "verdict": first.verdict,
                "reasons": reasons(first, advice),
                "synthetic_key": first.candidate.spec_json(),
                "python": (
                    entity_text(first.candidate) if of_table else python_text(first.candidate, name)
                ),
                "function": plain_function(first.candidate),
                "migration": migration_text(first.candidate, current),
                "stability": advice.stability,
                "tied_with": [one.candidate.name for one in advice.ranked if one.tied],
            },
            "candidates": [_candidate(one, advice) for one in advice.ranked],
            "patterns": [
                {"name": one.name, "seen": one.seen, "advice": one.advice}
                for one in patterns(advice)
            ],
            "inputs": _inputs(advice),
            "notes": caveats(advice),
        }
    )
    return found


def _candidate(one: Ranked, advice: Advice) -> dict[str, Any]:
    found: dict[str, Any] = {
        "key": one.candidate.name,
        "kind": one.candidate.kind,
        "rank": one.rank,
        "verdict": one.verdict,
        "reasons": reasons(one, advice),
        "measures": measures_json(one.measured.measures, advice.scale),
        "score": round(one.score, 2),
        "score_interval": None
        if one.interval is None
        else [round(min(x, one.score), 2) for x in one.interval],
        "factors": {name: round(value, 4) for name, value in one.judgement.factors.items()},
        "colours": one.judgement.colours,
        "failed": list(one.judgement.failed),
        "official": asdict(official(one.candidate, advice.workload, advice.scale.partitions)),
    }
    if one.verdict == "rejected":
        found["when"] = consequence(one, advice)
        found["cure"] = cure(one, advice)
    return found


def measures_json(m: Measures, t: Scale) -> dict[str, Any]:
    n = t.partitions
    return {
        "presence": m.presence,
        "types": list(m.types),
        "key_bytes_max": m.key_bytes_max,
        "distinct": round(m.distinct),
        "distinct_target": round(m.distinct_target),
        "effective_keys": m.effective_keys,
        "top1_share": m.top1_bytes,
        "top10_share": m.top10_bytes,
        "top1_ru_share": m.top1_ru,
        "max_over_mean": m.max_over_mean,
        "cv": m.cv,
        "gini": m.gini,
        "entropy": m.entropy,
        "phi": {str(count): value for count, value in m.phi_bytes.items()},
        "phi_today": m.phi_bytes.get(t.partitions_today, m.phi_bytes[1]),
        "phi_target": m.phi_bytes[n],
        "phi_ru": m.phi_ru,
        "temporal_heat": m.heat.share,
        "heat_tick_seconds": m.heat.tick,
        "time_correlation": m.heat.correlation,
        "key_lifetime": m.heat.lifetime,
        "cross_partition_share": m.cross_share,
        "unrouted_share": m.unrouted_share,
        "single_key_share": m.routed_share,
        "fan_out_ru": m.fan_out_ru,
        "fan_out_share": m.fan_out,
        "transaction_coverage": m.coverage,
        "horizon_days": m.horizon_days,
        "largest_key_bytes": m.largest_key_bytes,
        "duplicate_share": m.duplicates,
        "changing_share": m.changing,
        "ru_ceiling": m.ru_ceiling,
        "ru_needed": m.ru_second,
        "dollars_month": m.dollars_month,
        "top_keys": [{"key": key, "share": share} for key, share in m.top_keys],
        "partition_shares": list(m.ranges_loaded),
        "operations": [
            {
                "name": to.name,
                "kind": to.kind,
                "rate": to.rate,
                "route": to.how,
                "keys": to.keys,
                "partitions": to.ranges,
                "ru": to.charge_ru,
            }
            for to in m.sent
        ],
    }


def _inputs(advice: Advice) -> dict[str, Any]:
    survey, t = advice.survey, advice.scale
    axis = advice.clock.axis
    return {
        "items": survey.items,
        "bytes": round(survey.bytes),
        "item_bytes": survey.item_bytes,
        "sampled": advice.sampled.rows,
        "broken_lines": survey.broken,
        "stopped": survey.stopped,
        "paths": {
            format_path(path): {
                "distinct": round(column.distinct),
                "exact": column.is_exact,
                "items": column.items,
                "types": sorted(survey.seen[path].types),
            }
            for path, column in survey.columns.items()
        },
        "left_out": {format_path(path): why for path, why in survey.unfit.items()}
        | {
            format_path(path): "it has one value in all items"
            for path, column in survey.columns.items()
            if column.distinct <= 1 and advice.of(format_path(path)) is None
        },
        "time": None if axis is None else format_path(axis.path),
        "workload": {
            "assumed": advice.workload.assumed,
            "rate": advice.workload.rate,
            "write_share_ru": advice.demand.write_share,
            "operations": len(advice.workload.operations),
            "skipped": list(advice.workload.skipped),
        },
        "throughput_ru": t.throughput_ru,
        "storage_bytes": t.bytes_target,
        "growth_bytes_day": t.growth_bytes_day,
        "ttl_seconds": t.ttl_seconds,
        "regions": t.regions,
        "partitions_today": t.partitions_today,
        "partitions_target": t.partitions_target,
        "partitions_judged": t.partitions,
        "current_key": None if advice.current is None else advice.current.name,
    }


def _finite(value: Any) -> Any:
    """JSON has no infinity: what never happens is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
