"""What a query text says about properties: the part of it that decides where it must be asked.

    SELECT TOP 10 * FROM c WHERE c.tenant = @t AND c.state IN ("a", "b") AND c.at > @from
    ──▶ equal {/tenant: 1 value, /state: 2 values}   ranges {/at}   limit 10

Only what must be true of every result counts: an OR keeps the paths that all its sides speak of.
Anything not understood narrows nothing, so a query is never thought to be cheaper than it is.
Parameters need no values: a query is judged as a template. Texts are read by the product's own
parser and binder (`query/sql`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from armillary.encoding.paths import Path
from armillary.errors import BadInput
from armillary.limits import QUERY_KEYS_MAX
from armillary.query.problems import BadQuery
from armillary.query.sql import ast
from armillary.query.sql.binder import bind
from armillary.query.sql.parser import parse
from armillary.values import JSON, UNDEFINED

_ABOVE: Final = frozenset({">", ">="})
_MIRRORED: Final[dict[str, str]] = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The ends of a range as far as they are known; UNDEFINED where one is open or a parameter
    without value."""

    low: JSON = UNDEFINED
    high: JSON = UNDEFINED
    has_low: bool = False
    has_high: bool = False


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value in a filter: the name of a parameter, or what stands there itself."""

    name: str | None
    value: JSON = UNDEFINED


@dataclass(frozen=True, slots=True)
class Filters:
    equal: Mapping[Path, int]
    """Path → how many values it may have (`=`: 1; IN: so many as listed)."""
    ranges: Mapping[Path, Bounds]
    order: tuple[Path, ...] = ()
    group: tuple[Path, ...] = ()
    aggregates: tuple[str, ...] = ()
    distinct: bool = False
    limit: int | None = None
    """TOP or LIMIT, when it is a number or a parameter with a value."""
    selects_star: bool = True
    other: bool = False
    """Whether the filter has more in it than equalities and ranges."""
    fixed: Mapping[Path, tuple["Fixed", ...]] = field(default_factory=dict)
    """The values behind `equal`."""

    def values_of(self, path: Path, parameters: Mapping[str, JSON]) -> list[JSON]:
        """What a path is compared with, as far as it is known once parameters have values."""
        given = {_at(name): value for name, value in parameters.items()}
        found = [given.get(one.name or "", one.value) for one in self.fixed.get(path, ())]
        return [value for value in found if value is not UNDEFINED]


#: Of a query that could not be read.
NO_FILTERS: Final = Filters({}, {})


def read_filters(text: str, parameters: Mapping[str, JSON] | None = None) -> Filters:
    """BadInput says what is wrong with the text, and where."""
    try:
        query = parse(text)
        bound = bind(query)
    except BadQuery as error:
        first = error.errors[0]
        where = f" (at {text[first.start : first.end]!r})" if first.start >= 0 else ""
        raise BadInput(f"The query {text!r} can't be read: {first.message}{where}") from error
    known = {_at(name): value for name, value in (parameters or {}).items()}
    root = bound.container
    reader = _Reader(root, known)
    said = _Said({}, {}) if query.where is None or root is None else reader.read(query.where)
    order = query.order_by.items if isinstance(query.order_by, ast.OrderBy) else ()
    return Filters(
        said.equal,
        said.ranges,
        tuple(path for item in order if (path := reader.path(item.expr)) is not None),
        tuple(path for expr in query.group_by if (path := reader.path(expr)) is not None),
        tuple(call.function for call in bound.aggregates),
        query.distinct,
        reader.limit(query),
        isinstance(query.select, ast.SelectStar),
        said.other,
        said.fixed,
    )


@dataclass(frozen=True, slots=True)
class _Said:
    equal: dict[Path, int]
    ranges: dict[Path, Bounds]
    other: bool = False
    fixed: dict[Path, tuple[Fixed, ...]] = field(default_factory=dict)


_NOTHING: Final = _Said({}, {}, True)


@dataclass(frozen=True, slots=True)
class _Reader:
    root: str | None
    parameters: Mapping[str, JSON]

    def read(self, expr: ast.Expr) -> _Said:
        match expr:
            case ast.Logical("AND", terms):
                return _all([self.read(term) for term in terms])
            case ast.Logical("OR", terms):
                return _any([self.read(term) for term in terms])
            case ast.Binary("=", left, right):
                return self._equal(left, (right,)) or self._equal(right, (left,)) or _NOTHING
            case ast.In(operand, items, False):
                return self._equal(operand, items) or _NOTHING
            case ast.Between(operand, low, high, False):
                return _all([self._range(">=", operand, low), self._range("<=", operand, high)])
            case ast.Binary(operator, left, right) if operator in _MIRRORED:
                if self.path(left) is None:
                    return self._range(_MIRRORED[operator], right, left)
                return self._range(operator, left, right)
            case ast.Member():
                path = self.path(expr)
                return _NOTHING if path is None else _one(path, Fixed(None, True))
            case ast.Unary("NOT", ast.Member() as operand):
                path = self.path(operand)
                return _NOTHING if path is None else _one(path, Fixed(None, False))
        return _NOTHING

    def path(self, expr: ast.Expr) -> Path | None:
        found = ast.property_path(expr)
        if found is None or len(found) < 2 or found[0] != self.root:
            return None
        return found[1:]

    def limit(self, query: ast.Query) -> int | None:
        counts = [self._value(query.top.count)] if query.top is not None else []
        if query.page is not None:
            counts.append(self._value(query.page.limit))
        whole = [count for count in counts if isinstance(count, int)]
        return min(whole, default=None)

    def _equal(self, left: ast.Expr, values: tuple[ast.Expr, ...]) -> _Said | None:
        path = self.path(left)
        if path is None or not all(map(_is_fixed, values)) or len(values) > QUERY_KEYS_MAX:
            return None
        return _Said({path: len(values)}, {}, fixed={path: tuple(map(self._fixed, values))})

    def _range(self, operator: str, left: ast.Expr, right: ast.Expr) -> _Said:
        path = self.path(left)
        if path is None or not _is_fixed(right):
            return _NOTHING
        value = self._value(right)
        if operator in _ABOVE:
            return _Said({}, {path: Bounds(low=value, has_low=True)})
        return _Said({}, {path: Bounds(high=value, has_high=True)})

    def _fixed(self, expr: ast.Expr) -> Fixed:
        name = _at(expr.name) if isinstance(expr, ast.Parameter) else None
        return Fixed(name, self._value(expr))

    def _value(self, expr: ast.Expr) -> JSON:
        match expr:
            case ast.Literal(value):
                return value
            case ast.Parameter(name):
                return self.parameters.get(_at(name), UNDEFINED)
        return UNDEFINED


def _one(path: Path, value: Fixed) -> _Said:
    return _Said({path: 1}, {}, fixed={path: (value,)})


def _all(sides: list[_Said]) -> _Said:
    equal: dict[Path, int] = {}
    fixed: dict[Path, tuple[Fixed, ...]] = {}
    ranges: dict[Path, Bounds] = {}
    for side in sides:
        for path, count in side.equal.items():
            if path not in equal or count < equal[path]:
                equal[path], fixed[path] = count, side.fixed.get(path, ())
        for path, bounds in side.ranges.items():
            before = ranges.get(path, Bounds())
            ranges[path] = Bounds(
                bounds.low if bounds.has_low else before.low,
                bounds.high if bounds.has_high else before.high,
                bounds.has_low or before.has_low,
                bounds.has_high or before.has_high,
            )
    return _Said(equal, ranges, any(side.other for side in sides), fixed)


def _any(sides: list[_Said]) -> _Said:
    shared = set.intersection(*(set(side.equal) for side in sides))
    counts = {path: sum(side.equal[path] for side in sides) for path in shared}
    equal = {path: count for path, count in counts.items() if count <= QUERY_KEYS_MAX}
    fixed = {
        path: tuple(one for side in sides for one in side.fixed.get(path, ())) for path in equal
    }
    same = all(set(side.equal) == shared and not side.ranges for side in sides)
    return _Said(equal, {}, not same or any(side.other for side in sides), fixed)


def _is_fixed(expr: ast.Expr) -> bool:
    """The same for every item: nothing in it is a name of the query."""
    varying = ast.Identifier | ast.Subquery | ast.UdfCall | ast.Let
    return not any(isinstance(node, varying) for node in ast.walk(expr))


def _at(name: str) -> str:
    return name if name.startswith("@") else f"@{name}"
