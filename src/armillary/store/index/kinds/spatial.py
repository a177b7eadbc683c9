"""Places: the geospatial configuration, spatial indexes, and a row for each cell of each shape.

Paths may go into arrays and end in `/*`. A search by cells looks at the item again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from armillary.encoding.geo.boxes import KINDS, boxes_of
from armillary.encoding.geo.cells import EARTH, Box, cells_of
from armillary.errors import BadInput
from armillary.store.index.kinds.base import Kind, Row, row_prefix
from armillary.store.index.kinds.forms import a_list, an_object, each, is_one_of
from armillary.store.index.paths import ARRAY, Array, IndexPath, Path, Segment, parse_index_path
from armillary.store.rows import layout
from armillary.values import JSON

GEOSPATIAL: Final = ("geography", "geometry")
_SPATIAL_TYPES: Final = {"point", "linestring", "polygon", "multipolygon"}


@dataclass(frozen=True, slots=True)
class SpatialIndex:
    path: IndexPath
    geometry: bool
    domain: Box

    @property
    def prefix(self) -> bytes:
        return layout.SX

    def covers(self, path: Path) -> bool:
        own = self.path.segments
        if self.path.kind == "scalar":
            return path == own
        return bool(path) and path[: len(own)] == own

    def rows(self, item: dict[str, JSON]) -> Iterator[Row]:
        everything = self.path.kind == "subtree"
        for path, shape in _shapes(item, self.path.segments, (), everything):
            prefix = row_prefix(layout.SX, path)
            for box in boxes_of(shape, geometry=self.geometry):
                for cell in cells_of(box, self.domain):
                    yield prefix + cell, b""


def _shapes(
    value: JSON, left: Path, at: tuple[Segment, ...], everything: bool
) -> Iterator[tuple[Path, JSON]]:
    """Values that look like shapes at a path, or anywhere below it."""
    if not left:
        if type(value) is dict and value.get("type") in KINDS:
            yield at, value
        if everything:
            for segment, inner in _inside(value):
                yield from _shapes(inner, (), (*at, segment), True)
        return
    first, *rest = left
    if isinstance(first, Array):
        for inner in value if type(value) is list else ():
            yield from _shapes(inner, tuple(rest), (*at, first), everything)
    elif type(value) is dict and first in value:
        yield from _shapes(value[first], tuple(rest), (*at, first), everything)


def _inside(value: JSON) -> Iterator[tuple[Segment, JSON]]:
    if type(value) is dict:
        yield from value.items()
    elif type(value) is list:
        for each in value:
            yield ARRAY, each


def is_geometry(document: Mapping[str, JSON]) -> bool:
    """Whether shapes lie in a plane rather than on the earth."""
    config = document.get("geospatialConfig")
    kind = config.get("type") if isinstance(config, dict) else None
    return isinstance(kind, str) and kind.lower() == "geometry"


def _describe(document: Mapping[str, Any]) -> dict[str, JSON]:
    return {"geometry": is_geometry(document)}


def _told(document: Mapping[str, Any]) -> dict[str, Any]:
    return {"geography": not is_geometry(document)}


def _compile(entry: Mapping[str, Any], known: Mapping[str, Any]) -> SpatialIndex:
    geometry = known["geometry"]
    return SpatialIndex(parse_index_path(entry["path"]), geometry, _domain(entry, geometry))


def _domain(entry: Mapping[str, Any], geometry: bool) -> Box:
    box = entry.get("boundingBox")
    if not geometry or not box:
        return EARTH
    return Box(*(float(box[name]) for name in ("xmin", "ymin", "xmax", "ymax")))


# --- policies -------------------------------------------------------------------------------------


def _check_spatial(entry: dict[str, JSON]) -> None:
    if parse_index_path(entry.get("path")).kind == "tuple":
        raise BadInput("A spatial index can't have a tuple path.")
    types = a_list(entry, "types")
    if not all(isinstance(name, str) and name.lower() in _SPATIAL_TYPES for name in types):
        raise BadInput(
            f"The types {types!r} of a spatial index are invalid; allowed are 'Point', "
            "'LineString', 'Polygon' and 'MultiPolygon'."
        )


def _check_policies(document: Mapping[str, Any]) -> None:
    config = document.get("geospatialConfig")
    if config is not None:
        _check_geospatial(an_object(config, "geospatialConfig"))
    check_box = _check_box if is_geometry(document) else _refuse_box
    for index in a_list(document.get("indexingPolicy") or {}, "spatialIndexes"):
        check_box(an_object(index, "spatialIndexes"))


def _check_geospatial(config: dict[str, JSON]) -> None:
    if not is_one_of(config.get("type"), GEOSPATIAL):
        raise BadInput(
            f"The type {config.get('type')!r} of the geospatialConfig is invalid; allowed are "
            "'Geography' and 'Geometry'."
        )


def _refuse_box(index: dict[str, JSON]) -> None:
    """On the earth there is nothing around it."""
    if index.get("boundingBox") is not None:
        raise BadInput(
            f"The spatial index on '{index.get('path')}' has a boundingBox, which a "
            "geospatialConfig of type Geography does not take; only one of type Geometry does."
        )


def _check_box(index: dict[str, JSON]) -> None:
    """Of a spatial index in the plane (nosql-query 7.1)."""
    box = index.get("boundingBox")
    given = box if isinstance(box, dict) else {}
    sides = [given.get(name) for name in ("xmin", "ymin", "xmax", "ymax")]
    if not all(type(side) in (int, float) for side in sides):
        raise BadInput(
            f"The spatial index on '{index.get('path')}' needs a boundingBox with the numbers "
            "xmin, ymin, xmax and ymax, because the geospatialConfig is Geometry."
        )
    if given["xmin"] >= given["xmax"] or given["ymin"] >= given["ymax"]:
        raise BadInput(f"The boundingBox of the spatial index on '{index.get('path')}' is empty.")


KIND: Final = Kind(
    name="spatialIndexes",
    prefix=layout.SX,
    parse=each("spatialIndexes", _check_spatial),
    describe=_describe,
    compile=_compile,
    told=_told,
    check_policies=_check_policies,
)
