"""The policies of a container except its ranges of paths: those of other kinds of index, conflicts.

Called when a container is created or replaced, never when one is loaded: what was once accepted
stays readable. What each kind of index asks for is in store/index/kinds/.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from armillary.errors import BadInput
from armillary.store.index.kinds.forms import an_object, is_one_of, is_path
from armillary.store.index.kinds.registry import KINDS
from armillary.values import JSON

CONFLICT_MODES: Final = ("lastwriterwins", "custom")
#: Kept for life. Who does not speak of one on a replace keeps what there is.
FIXED: Final = ("conflictResolutionPolicy",)


def check_policies(document: Mapping[str, JSON]) -> None:
    """Raises BadInput when the policies of a container's definition do not fit together."""
    an_object(document.get("indexingPolicy") or {}, "indexingPolicy")
    for kind in KINDS:
        kind.check_policies(document)
    conflicts = document.get("conflictResolutionPolicy")
    if conflicts is not None:
        _check_conflicts(an_object(conflicts, "conflictResolutionPolicy"))


def inherited(body: JSON, old: Mapping[str, JSON]) -> JSON:
    """A replacement that leaves out what can't change means what there is."""
    if not isinstance(body, dict):
        return body
    names = (*FIXED, "syntheticKey")
    kept = {name: old[name] for name in names if body.get(name) is None and name in old}
    return {**body, **kept}


def check_policy_replacement(old: Mapping[str, JSON], new: Mapping[str, JSON]) -> None:
    for name in FIXED:
        if old.get(name) != new.get(name):
            raise BadInput(f"The {name} of a container can't be changed after it was created.")
    for kind in KINDS:
        kind.check_replacement(old, new)


# --- conflicts ------------------------------------------------------------------------------------


def _check_conflicts(policy: dict[str, JSON]) -> None:
    mode = policy.get("mode")
    if mode is not None and not is_one_of(mode, CONFLICT_MODES):
        raise BadInput(
            f"The mode {mode!r} of the conflictResolutionPolicy is invalid; allowed are "
            "'LastWriterWins' and 'Custom'."
        )
    path = policy.get("conflictResolutionPath")
    if path and not is_path(path):
        raise BadInput(f"The conflictResolutionPath {path!r} is no path such as '/_ts'.")
    procedure = policy.get("conflictResolutionProcedure")
    if procedure is not None and not isinstance(procedure, str):
        raise BadInput("The conflictResolutionProcedure must be a text.")
