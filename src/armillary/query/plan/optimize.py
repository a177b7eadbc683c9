"""Rules that make a plan read less: which part of the hash space can hold the answer.

    WHERE c.tenant = "a" AND c.age > 3        the one logical partition "a"
    WHERE c.tenant IN ("a", "b")              two of them
    WHERE c.tenant = "a"     (key /tenant, /user)   the hashes that begin with that of "a"
    WHERE c.date = "d" AND c.vin = "v"        the one logical partition, if the container makes
                                              its synthetic key of just these
    WHERE false                               nothing

Only conjuncts narrow, and they stay in the filter: narrowing is about where to look.
"""

from __future__ import annotations

from itertools import product
from math import prod

from armillary.encoding.hashing import prefix_range
from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.models import ValueModel
from armillary.encoding.partition_key import KeyValues, check_key
from armillary.errors import BadInput
from armillary.keys.views import put
from armillary.limits import QUERY_KEYS_MAX
from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Scope, constant
from armillary.query.plan.nodes import Piece, Plan, conjuncts, fact
from armillary.store.catalog.definitions import ContainerDefinition
from armillary.store.catalog.state import make_key
from armillary.store.index.paths import Segment
from armillary.values import JSON, UNDEFINED


def path_of(expr: nodes.Expr, root: str) -> tuple[str, ...] | None:
    """The names of a path that begins at `root`: `c.a["b"]` → a, b."""
    names: list[str] = []
    while isinstance(expr, nodes.Member):
        names.append(expr.name)
        expr = expr.base
    if isinstance(expr, nodes.Identifier) and expr.name == root and names:
        return tuple(reversed(names))
    return None


# --- partition keys -------------------------------------------------------------------------------


def pieces_of_key(values: KeyValues, definition: ContainerDefinition) -> list[Piece]:
    """One logical partition, or all whose hierarchical key begins with these values."""
    key = definition.partition_key
    checked = check_key(values, key, prefix_allowed=True)
    if len(checked) < len(key.paths) and not key.system_key:
        return [Piece(*prefix_range(checked, key))]
    place, found = make_key(checked, definition)
    return [Piece(place, place + b"\x00", found)]


def narrow(plan: Plan, scope: Scope, definition: ContainerDefinition) -> list[Piece] | None:
    """The pieces of the hash space that a filter allows, in the order of hashes; None for all."""
    if plan.base is not None or not plan.sources or plan.where is None:
        return None
    terms, plain, names = fact(plan, "terms", _terms)
    for term in plain:
        known, value = constant(term, scope)
        if known and value is not True:
            return []
    alias = plan.bound.container
    key = definition.partition_key
    if alias is None or key.system_key:
        return None
    allowed: list[list[JSON]] = []
    for path in key.paths:
        values = _values_of(path, terms, alias, scope) if path[-1] in names else None
        if values is None:
            break
        allowed.append(values)
    if not allowed:
        made = _made_keys(plan, terms, alias, scope, definition)
        if made is None:
            return None
        allowed.append(made)
    return _pieces(allowed, definition, scope.model)


def _made_keys(
    plan: Plan, terms: list[nodes.Expr], alias: str, scope: Scope, definition: ContainerDefinition
) -> list[JSON] | None:
    """The synthetic keys of all items that a filter on every source leaves. No item is stored under
    another: a write that says otherwise is refused.
    """
    synthetic = definition.synthetic_key
    if synthetic is None or synthetic.is_random or scope.model is not JSON_MODEL:
        return None
    sources = synthetic.sources
    if any(path[0] in plan.computed for path in sources):
        return None
    chosen = [_values_of(path, terms, alias, scope) for path in sources]
    known = [values for values in chosen if values is not None]
    if not sources or len(known) < len(sources) or prod(map(len, known)) > QUERY_KEYS_MAX:
        return None
    keys: list[JSON] = []
    for values in product(*known):
        item: dict[str, JSON] = {}
        try:
            for path, value in zip(sources, values, strict=True):
                item = put(item, path, value)
            keys.append(synthetic.value_for(item))
        except BadInput:
            return None  # no key can be made of it: let the filter decide
    return keys


def _terms(plan: Plan) -> tuple[list[nodes.Expr], list[nodes.Expr], frozenset[Segment]]:
    """The conjuncts of the filter, those of them that speak of no name, and the properties that
    are spoken of: most filters say nothing of a key."""
    terms = list(conjuncts(plan.where))
    names: set[Segment] = set()
    for node in (node for term in terms for node in nodes.walk(term)):
        if isinstance(node, nodes.Member):
            names.add(node.name)
        elif isinstance(node, nodes.AtPath):
            names.update(node.path)
    return terms, [term for term in terms if _is_plain(term)], frozenset(names)


def _pieces(
    allowed: list[list[JSON]], definition: ContainerDefinition, model: ValueModel
) -> list[Piece] | None:
    count = 1
    for values in allowed:
        count *= len(values)
    if count > QUERY_KEYS_MAX:
        return None
    pieces: dict[bytes, Piece] = {}
    for chosen in product(*allowed):
        if any(value is UNDEFINED or not model.is_scalar(value) for value in chosen):
            continue  # no item has such a key
        try:
            (piece,) = pieces_of_key(tuple(map(model.key, chosen)), definition)
        except BadInput:
            return None  # no key can be made of it: let the filter decide
        pieces[piece.start] = piece
    return [pieces[start] for start in sorted(pieces)]


def _values_of(
    path: tuple[str, ...], terms: list[nodes.Expr], alias: str, scope: Scope
) -> list[JSON] | None:
    """The values that one conjunct leaves for a path, None when none says anything."""
    for term in terms:
        found = _equal_to(term, path, alias, scope)
        if found is not None:
            return found
    return None


def _equal_to(
    term: nodes.Expr, path: tuple[str, ...], alias: str, scope: Scope
) -> list[JSON] | None:
    match term:
        case nodes.Binary("=", left, right):
            for one, other in ((left, right), (right, left)):
                if path_of(one, alias) == path:
                    return _constants([other], scope)
        case nodes.In(operand, items, False) if path_of(operand, alias) == path:
            return _constants(items, scope)
        case nodes.AtPath(at, "=", value, root=root) if at == path and root == alias:
            return [value]
        case nodes.Logical("OR", terms):
            alternatives = [_equal_to(each, path, alias, scope) for each in terms]
            if all(each is not None for each in alternatives):
                return [value for each in alternatives for value in each or ()]
        case nodes.Logical("AND", terms):
            return _values_of(path, list(terms), alias, scope)
        case _ if path_of(term, alias) == path:
            return [True]
        case nodes.Unary("NOT", operand) if path_of(operand, alias) == path:
            return [False]
    return None


def _constants(exprs: list[nodes.Expr] | tuple[nodes.Expr, ...], scope: Scope) -> list[JSON] | None:
    values: list[JSON] = []
    for expr in exprs:
        if not _is_plain(expr):
            return None
        known, value = constant(expr, scope)
        if not known:
            return None
        values.append(value)
    return values


def _is_plain(expr: nodes.Expr) -> bool:
    """Whether it speaks of no name: only then can it be computed without a row."""
    if isinstance(expr, nodes.Literal | nodes.Parameter):
        return True
    return not any(isinstance(node, nodes.VARYING) for node in nodes.walk(expr))
