// __.spatial: distance, within, intersects, isValid, isValidDetailed over GeoJSON. Facts: scripts 2.4.
// The same rules as ST_… in queries (query/functions/spatial.py): relations in the plane of longitude
// and latitude, an edge over the antimeridian is the short one, an outer ring that runs clockwise means
// all that is outside of it, distances on the ellipsoid.
(function (library) {
  'use strict';
  const isArray = Array.isArray, isFinite = Number.isFinite, isGeography = library.setup.geography;
  const {abs, acos, asin, atan, atan2, cos, hypot, max, min, sin, sqrt, tan, PI} = Math;
  const POINTS_MAX = library.limits.polygon_points;

  // --- reading ----------------------------------------------------------------------------------

  class Invalid { constructor(reason) { this.reason = reason; } }
  const unless = (is, reason) => { if (!is) throw new Invalid(reason); };
  function position(value) {
    unless(isArray(value) && value.length >= 2 && value.every((one) => typeof one === 'number'), 'A position must be an array of at least two numbers.');
    const [x, y] = value;
    unless(isFinite(x) && isFinite(y), 'A position must have finite numbers.');
    unless(!isGeography || abs(y) <= 90, 'Latitude values must be between -90 and 90 degrees.');
    unless(!isGeography || abs(x) <= 180, 'Longitude values must be between -180 and 180 degrees.');
    return [x, y];
  }
  function positions(value, least, what) {
    unless(isArray(value) && value.length >= least, `${what} must have at least ${least} positions.`);
    unless(value.length <= POINTS_MAX, `${what} must have at most ${POINTS_MAX} positions.`);
    return unwrapped(value.map(position));
  }
  function unwrapped(line) {
    if (!isGeography) return line;
    let turn = 0;
    return line.map(([x, y], at) => {
      if (at && x - line[at - 1][0] > 180) turn -= 360;
      if (at && x - line[at - 1][0] < -180) turn += 360;
      return [x + turn, y];
    });
  }
  function ring(value) {
    const made = positions(value, 4, 'A polygon ring'), first = value[0], last = value[value.length - 1];
    unless(first[0] === last[0] && first[1] === last[1], 'A polygon ring must end where it starts.');
    return made;
  }
  const areaOf = (line) => edges(line).reduce((sum, [[a, b], [c, d]]) => sum + a * d - c * b, 0) / 2;
  const edges = (line) => line.slice(1).map((end, at) => [line[at], end]);
  function polygon(value) {
    unless(isArray(value) && value.length, 'A polygon must have at least one ring.');
    const rings = value.map(ring), outer = rings[0], area = areaOf(outer);
    unless(rings.reduce((sum, one) => sum + one.length, 0) <= POINTS_MAX, `A polygon must have at most ${POINTS_MAX} positions.`);
    unless(area !== 0 && isSimple(outer), 'A polygon ring must not intersect itself and must enclose an area.');
    const holes = rings.slice(1), sound = holes.every((hole, at) => isSimple(hole) && areaOf(hole) !== 0 &&
      hole.every((p) => side(p, outer) >= 0) && holes.slice(0, at).every((other) => !overlap(hole, other)));
    unless(sound, 'The holes of a polygon must lie inside its outer ring and not overlap.');
    return {rings, isOutside: isGeography && area < 0};
  }
  const isSimple = (line) => {
    const all = edges(line);
    return all.every(([a, b], i) => all.slice(i + 1).every(([c, d], k) => {
      const isNext = k === 0 || (i === 0 && i + 1 + k === all.length - 1);
      return isNext ? !(turnOf(a, b, c) === 0 && turnOf(a, b, d) === 0 && crossesBack(a, b, c, d, k === 0)) : !meet(a, b, c, d);
    }));
  };
  const crossesBack = (a, b, c, d, isAfter) => {
    const [from, to] = isAfter ? [[a[0] - b[0], a[1] - b[1]], [d[0] - c[0], d[1] - c[1]]] : [[b[0] - a[0], b[1] - a[1]], [c[0] - d[0], c[1] - d[1]]];
    return from[0] * to[0] + from[1] * to[1] > 0;
  };
  const overlap = (one, two) => crosses([one], [two]) || side(one[0], two) > 0 || side(two[0], one) > 0;
  function read(value) {
    unless(typeof value === 'object' && value !== null && !isArray(value) && typeof value.type === 'string', 'The value is not a GeoJSON object.');
    const {type, coordinates} = value;
    if (type === 'Point') return {type, lines: [[position(coordinates)]], areas: []};
    if (type === 'LineString') return {type, lines: [positions(coordinates, 2, 'A line string')], areas: []};
    unless(type === 'Polygon' || type === 'MultiPolygon', `The GeoJSON type '${type}' is not supported.`);
    unless(type === 'Polygon' || (isArray(coordinates) && coordinates.length), 'A multi-polygon must have at least one polygon.');
    const areas = type === 'Polygon' ? [polygon(coordinates)] : coordinates.map(polygon);
    unless(areas.every((one, at) => areas.slice(0, at).every((other) => !overlap(one.rings[0], other.rings[0]))), 'The polygons of a multi-polygon must not share area or edges.');
    return {type, lines: areas.flatMap((one) => one.rings), areas};
  }
  const shapeOf = (value) => { try { return read(value); } catch (error) { if (error instanceof Invalid) return null; throw error; } };

  // --- the plane --------------------------------------------------------------------------------

  const turnOf = (a, b, c) => (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
  const isOn = (p, a, b) => turnOf(a, b, p) === 0 && min(a[0], b[0]) <= p[0] && p[0] <= max(a[0], b[0]) && min(a[1], b[1]) <= p[1] && p[1] <= max(a[1], b[1]);
  function meet(a, b, c, d) {
    const s = turnOf(a, b, c), t = turnOf(a, b, d), u = turnOf(c, d, a), v = turnOf(c, d, b);
    if (s * t < 0 && u * v < 0) return true;
    return isOn(c, a, b) || isOn(d, a, b) || isOn(a, c, d) || isOn(b, c, d);
  }
  const isProper = (a, b, c, d) => turnOf(a, b, c) * turnOf(a, b, d) < 0 && turnOf(c, d, a) * turnOf(c, d, b) < 0;
  const anyEdges = (one, two, test) => one.some((line) => edges(line).some(([a, b]) => two.some((other) => edges(other).some(([c, d]) => test(a, b, c, d)))));
  const crosses = (one, two) => anyEdges(one, two, isProper);
  // 1 inside of a ring, 0 on it, -1 outside.
  function side(p, line) {
    let isInside = false;
    for (const [a, b] of edges(line)) {
      if (isOn(p, a, b)) return 0;
      if ((a[1] > p[1]) !== (b[1] > p[1]) && p[0] < (b[0] - a[0]) * (p[1] - a[1]) / (b[1] - a[1]) + a[0]) isInside = !isInside;
    }
    return isInside ? 1 : -1;
  }
  function inArea(p, {rings, isOutside}) {
    const [outer, ...holes] = rings.map((one) => side(p, one));
    const found = outer < 1 ? outer : min(1, ...holes.map((one) => -one));
    return isOutside ? -found : found;
  }
  const inShape = (p, shape) => shape.areas.reduce((best, one) => max(best, inArea(p, one)), -1);
  function touch(one, two) {
    const single = [one, two].find((shape) => shape.type === 'Point');
    if (single) {
      const p = single.lines[0][0], other = single === one ? two : one;
      if (other.type === 'Point') return p[0] === other.lines[0][0][0] && p[1] === other.lines[0][0][1];
      return inShape(p, other) >= 0 || other.lines.some((line) => edges(line).some(([a, b]) => isOn(p, a, b)));
    }
    return anyEdges(one.lines, two.lines, meet) || inShape(one.lines[0][0], two) >= 0 || inShape(two.lines[0][0], one) >= 0;
  }
  const middle = ([a, b]) => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  function holds(outer, inner) {
    if (inner.type === 'Point') return inShape(inner.lines[0][0], outer) > 0;
    // The middle of an edge that runs along the border would miss it by a rounding error.
    const isAlong = ([a, b]) => outer.lines.some((line) => edges(line).some(([c, d]) => isOn(a, c, d) && isOn(b, c, d)));
    const points = inner.lines.flatMap((line) => line.concat(edges(line).filter((one) => !isAlong(one)).map(middle)));
    const sides = points.map((p) => inShape(p, outer));
    if (sides.some((one) => one < 0) || crosses(inner.lines, outer.lines)) return false;
    if (!inner.areas.length) return sides.some((one) => one > 0);
    const isAround = outer.lines.some((line) => line.some((p) => inShape(p, inner) > 0));
    return !isAround && inner.areas.every((one) => !one.isOutside || outer.areas.some((area) => area.isOutside));
  }
  // Over the antimeridian a shape may lie beyond 180: its copies a turn east and west count too.
  function copies(shape, other) {
    const reaches = (one) => one.lines.some((line) => line.some((p) => abs(p[0]) >= 180));
    if (!isGeography || !(reaches(shape) || reaches(other))) return [shape];
    const moved = (by) => {
      const move = (line) => line.map(([x, y]) => [x + by, y]);
      const areas = shape.areas.map((one) => ({rings: one.rings.map(move), isOutside: one.isOutside}));
      return {type: shape.type, lines: shape.lines.map(move), areas};
    };
    return [shape, moved(-360), moved(360)];
  }
  const doTouch = (one, two) => copies(one, two).some((copy) => touch(copy, two));

  // --- on the ellipsoid: Vincenty's formula, WGS-84 ---------------------------------------------

  const A = 6378137, F = 1 / 298.257223563, B = A * (1 - F), RADIANS = PI / 180;
  function geodesic([x1, y1], [x2, y2]) {
    const L = ((x2 - x1 + 540) % 360 - 180) * RADIANS;
    const u1 = atan((1 - F) * tan(y1 * RADIANS)), u2 = atan((1 - F) * tan(y2 * RADIANS));
    const su1 = sin(u1), cu1 = cos(u1), su2 = sin(u2), cu2 = cos(u2);
    let lambda = L;
    for (let round = 0; round < 200; round++) {
      const sl = sin(lambda), cl = cos(lambda);
      const ss = hypot(cu2 * sl, cu1 * su2 - su1 * cu2 * cl);
      if (ss === 0) return 0;
      const cs = su1 * su2 + cu1 * cu2 * cl, sigma = atan2(ss, cs), sa = cu1 * cu2 * sl / ss, c2a = 1 - sa * sa;
      const c2m = c2a === 0 ? 0 : cs - 2 * su1 * su2 / c2a, C = F / 16 * c2a * (4 + F * (4 - 3 * c2a));
      const next = L + (1 - C) * F * sa * (sigma + C * ss * (c2m + C * cs * (2 * c2m * c2m - 1)));
      if (abs(next - lambda) < 1e-13) {
        const us = c2a * (A * A - B * B) / (B * B);
        const a = 1 + us / 16384 * (4096 + us * (us * (320 - 175 * us) - 768)), b = us / 1024 * (256 + us * (us * (74 - 47 * us) - 128));
        const ds = b * ss * (c2m + b / 4 * (cs * (2 * c2m * c2m - 1) - b / 6 * c2m * (4 * ss * ss - 3) * (4 * c2m * c2m - 3)));
        return B * a * (sigma - ds);
      }
      lambda = next;
    }
    return round([x1, y1], [x2, y2]); // nearly the other side of the earth, where it does not converge
  }
  // On a sphere: good enough to find where an edge is nearest.
  const round = ([x1, y1], [x2, y2]) => {
    const h = sin((y2 - y1) * RADIANS / 2) ** 2 + cos(y1 * RADIANS) * cos(y2 * RADIANS) * sin((x2 - x1) * RADIANS / 2) ** 2;
    return 2 * 6371008.8 * asin(min(1, sqrt(h)));
  };
  const vector = ([x, y]) => [cos(y * RADIANS) * cos(x * RADIANS), cos(y * RADIANS) * sin(x * RADIANS), sin(y * RADIANS)];
  function along(a, b) {
    const u = vector(a), v = vector(b), angle = acos(max(-1, min(1, u[0] * v[0] + u[1] * v[1] + u[2] * v[2])));
    if (angle < 1e-12) return () => a;
    return (t) => {
      const f = sin((1 - t) * angle) / sin(angle), g = sin(t * angle) / sin(angle);
      const [x, y, z] = u.map((one, at) => f * one + g * v[at]);
      return [atan2(y, x) / RADIANS, atan2(z, hypot(x, y)) / RADIANS];
    };
  }
  function toEdge(p, a, b) {
    if (!isGeography) {
      const [dx, dy] = [b[0] - a[0], b[1] - a[1]], size = dx * dx + dy * dy;
      const t = size ? max(0, min(1, ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / size)) : 0;
      return hypot(p[0] - a[0] - t * dx, p[1] - a[1] - t * dy);
    }
    const at = along(a, b);
    let low = 0, high = 1;
    while (high - low > 1e-9) {
      const one = low + (high - low) / 3, two = high - (high - low) / 3;
      if (round(p, at(one)) < round(p, at(two))) high = two; else low = one;
    }
    return geodesic(p, at((low + high) / 2));
  }
  function nearest(one, two) {
    const between = isGeography ? geodesic : (p, q) => hypot(p[0] - q[0], p[1] - q[1]);
    let best = Infinity;
    for (const [from, to] of [[one, two], [two, one]]) {
      for (const p of from.lines.flat()) {
        for (const line of to.lines) {
          if (line.length === 1) best = min(best, between(p, line[0]));
          else for (const [a, b] of edges(line)) best = min(best, toEdge(p, a, b));
        }
      }
    }
    return best;
  }

  const pair = (work) => (left, right) => {
    const one = shapeOf(left), two = one && shapeOf(right);
    return two ? work(one, two) : undefined;
  };
  return {
    distance: pair((one, two) => (doTouch(one, two) ? 0 : nearest(one, two))),
    intersects: pair(doTouch),
    within: pair((inner, outer) => (outer.areas.length ? copies(inner, outer).some((copy) => holds(outer, copy)) : undefined)),
    isValid: (value) => (value === undefined ? undefined : shapeOf(value) !== null),
    isValidDetailed(value) {
      if (value === undefined) return undefined;
      try { read(value); return {valid: true}; } catch (error) {
        if (error instanceof Invalid) return {valid: false, reason: error.reason};
        throw error;
      }
    },
  };
})
