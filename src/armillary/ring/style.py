"""Colours of the ring, for light and dark.

Heat goes from grey-blue to orange: readers who can't tell red from green see that difference, and
the lightness changes steadily alongside the hue, so that it survives a black and white print. The
other colours are from the palette of Okabe and Ito. Nothing is shown by colour alone.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

Theme: TypeAlias = Literal["auto", "light", "dark"]
THEMES: Final[tuple[Theme, ...]] = get_args(Theme)
STEPS: Final = 10
"""Of heat, above none at all."""

Colour: TypeAlias = tuple[int, int, int]

#: Where the scale passes on its way from nothing to the whole budget, at equal distances.
HEAT: Final[dict[str, tuple[Colour, ...]]] = {
    "light": ((0xD6, 0xE1, 0xEB), (0xF5, 0xC9, 0x5F), (0xE8, 0x8A, 0x1F), (0xB2, 0x33, 0x0B)),
    "dark": ((0x33, 0x47, 0x5A), (0x7A, 0x56, 0x2B), (0xD0, 0x78, 0x1C), (0xFF, 0xC4, 0x57)),
}
PAINT: Final[dict[str, dict[str, str]]] = {
    "light": {
        "paper": "#ffffff",
        "ink": "#16222e",
        "dim": "#5b6b7a",
        "faint": "#65778a",
        "line": "#d5dee6",
        "track": "#edf2f6",
        "brass": "#b08d3f",
        "store": "#0072b2",
        "refused": "#a3195b",
        "move": "#00795a",
        "past": "#a9b8c5",
        "on-heat": "#16222e",
        "on-hot": "#ffffff",
    },
    "dark": {
        "paper": "#10171f",
        "ink": "#eef3f7",
        "dim": "#a5b4c1",
        "faint": "#7a8a98",
        "line": "#2b3845",
        "track": "#1b2631",
        "brass": "#c9a95c",
        "store": "#56b4e9",
        "refused": "#ff8fb8",
        "move": "#2fd0a3",
        "past": "#4c5c6b",
        "on-heat": "#eef3f7",
        "on-hot": "#10171f",
    },
}
RULES: Final = """
.a-ring text{fill:var(--ink);
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
.a-ring .paper{fill:var(--paper)}
.a-ring .dim{fill:var(--dim)}.a-ring .faint{fill:var(--faint)}
.a-ring .big{font-size:26px;font-weight:650}.a-ring .head{font-size:17px;font-weight:650}
.a-ring .body{font-size:13px}.a-ring .small{font-size:11.5px}.a-ring .tiny{font-size:10px}
.a-ring .mid{text-anchor:middle}.a-ring .end{text-anchor:end}.a-ring .bold{font-weight:650}
.a-ring .track{fill:var(--track)}.a-ring .store{fill:var(--store)}
.a-ring .refused{fill:var(--refused)}.a-ring .rule{stroke:var(--line);stroke-width:1}
.a-ring .brass{fill:none;stroke:var(--brass);stroke-width:1}
.a-ring .thick{stroke-width:2}
.a-ring .past{fill:none;stroke:var(--past);stroke-width:3.5}
.a-ring .limit{fill:none;stroke:var(--faint);stroke-width:1;stroke-dasharray:2 3}
.a-ring .limit-line{fill:none;stroke:var(--ink);stroke-width:1.2;stroke-dasharray:3 3}
.a-ring .move{fill:none;stroke:var(--move);stroke-width:5;stroke-dasharray:9 4}
.a-ring .cut{stroke:var(--move);stroke-width:2}
.a-ring .lead{fill:none;stroke:var(--ink);stroke-width:1.2}
.a-ring .mark{fill:var(--ink)}.a-ring .on-mark{fill:var(--paper)}
.a-ring .onheat{fill:var(--on-heat)}.a-ring .onhot{fill:var(--on-hot)}
@media (prefers-reduced-motion:no-preference){
.a-ring .move{animation:a-ring-flow 1.2s linear infinite}
@keyframes a-ring-flow{to{stroke-dashoffset:-26}}}
"""


def heat_step(normalised: float) -> int:
    """0 only when nothing was used at all; the last only for a budget that is used up."""
    if normalised <= 0:
        return 0
    return max(1, min(STEPS, int(normalised / 100 * STEPS)))


def heat_colour(step: int, theme: str) -> str:
    stops = HEAT[theme]
    place = step / STEPS * (len(stops) - 1)
    first = min(int(place), len(stops) - 2)
    low, high = stops[first], stops[first + 1]
    mixed = (round(a + (b - a) * (place - first)) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{one:02x}" for one in mixed)


def css(theme: Theme) -> str:
    if theme == "auto":
        dark = f"@media (prefers-color-scheme:dark){{{_variables('dark')}}}"
        colours = _variables("light") + dark
    else:
        colours = _variables(theme)
    heat = "".join(f".a-ring .h{step}{{fill:var(--h{step})}}" for step in range(STEPS + 1))
    return colours + RULES.replace("\n", "") + heat


def page_css() -> str:
    """For a page that shows several pictures and has its own switch (`body.body--dark`)."""
    strokes = "".join(f".a-ring .s{step}{{stroke:var(--h{step})}}" for step in range(STEPS + 1))
    return css("light") + strokes + _variables("dark", ".body--dark .a-ring")


def _variables(theme: str, where: str = ".a-ring") -> str:
    paint = "".join(f"--{name}:{value};" for name, value in PAINT[theme].items())
    heat = "".join(f"--h{step}:{heat_colour(step, theme)};" for step in range(STEPS + 1))
    return f"{where}{{{paint}{heat}}}"
