"""Colours and rules of the page. The palette is that of Okabe and Ito; heat has the colours of the
ring, whose lightness changes with the value. Nothing is shown by colour alone."""

from typing import Final

from armillary.ring.style import STEPS, heat_colour

#: Lines of one plot: colour by order, and a dash of its own for each.
SERIES: Final[dict[str, tuple[str, ...]]] = {
    "light": ("#0072b2", "#d55e00", "#00795a", "#a3457f", "#7a6a00", "#3f4c5a"),
    "dark": ("#56b4e9", "#ff9a4d", "#2fd0a3", "#e79cc6", "#f0e442", "#b9c6d3"),
}
DASHES: Final = ("none", "7 4", "2 3", "9 3 2 3", "4 2", "1 2")

_PAINT: Final[dict[str, dict[str, str]]] = {
    "light": {
        "page": "#f4f6f9", "card": "#ffffff", "ink": "#16222e", "dim": "#556575",
        "line": "#dde4eb", "track": "#edf2f6", "good": "#0072b2", "bad": "#d55e00",
        "refused": "#a3195b", "mark": "#00795a", "code": "#eef2f6", "on-good": "#ffffff",
        "on-bad": "#ffffff", "on-mark": "#ffffff", "so-so": "#7a5b00",
    },
    "dark": {
        "page": "#0f151c", "card": "#18212b", "ink": "#e9eff5", "dim": "#a2b1bf",
        "line": "#2c3946", "track": "#212c38", "good": "#56b4e9", "bad": "#ff9a4d",
        "refused": "#ff8fb8", "mark": "#2fd0a3", "code": "#223040", "on-good": "#10171f",
        "on-bad": "#10171f", "on-mark": "#10171f", "so-so": "#f2c14e",
    },
}  # fmt: skip

RULES: Final = """
*{box-sizing:border-box}
html{color-scheme:light dark}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,
"Segoe UI",Roboto,"Helvetica Neue","DejaVu Sans",Arial,sans-serif;-webkit-text-size-adjust:100%}
main{max-width:1240px;margin:0 auto;padding:28px 24px 60px}
h1{font-size:28px;line-height:1.2;margin:0 0 6px;font-weight:700;letter-spacing:-.01em}
h2{font-size:19px;margin:0 0 4px;font-weight:650}
h3{font-size:14px;margin:0 0 2px;font-weight:650}
p{margin:0 0 10px}
code,.key{font-family:ui-monospace,"SF Mono","Cascadia Mono",Menlo,Consolas,"DejaVu Sans Mono",
monospace;font-size:.93em;background:var(--code);padding:1px 6px;border-radius:5px;
overflow-wrap:anywhere}
td .key{overflow-wrap:normal}
.lead{color:var(--dim);max-width:82ch}
.card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:20px 22px;
margin:18px 0}
.pair{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:26px;margin-top:12px}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;
margin:18px 0 0}
.fact{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px 14px}
.fact b{display:block;font-size:20px;font-weight:650;font-variant-numeric:tabular-nums}
.fact span{color:var(--dim);font-size:13px}
.answer{border-left:5px solid var(--mark)}
.answer .key{font-size:22px;padding:3px 10px}
.answer ul,.reasons{margin:10px 0 0;padding-left:20px}
.reasons{color:var(--dim);font-size:13.5px;margin:0;columns:2;column-gap:34px}
.reasons li{break-inside:avoid;margin-bottom:3px}
.note{color:var(--dim);font-size:13.5px}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:9px 10px;text-align:right;vertical-align:top;border-top:1px solid var(--line)}
thead th{border-top:0;color:var(--dim);font-weight:600;font-size:12.5px;vertical-align:bottom;
line-height:1.3}
th:first-child,td:first-child,td.left,th.left{text-align:left}
td{white-space:nowrap}td.left{white-space:normal}
tr.why td{border-top:0;padding-top:0;text-align:left;white-space:normal}
tbody tr.best{background:color-mix(in srgb,var(--mark) 8%,transparent)}
.badge{display:inline-block;font-size:12px;font-weight:650;padding:1px 9px;border-radius:20px;
white-space:nowrap;border:1.5px solid currentColor}
.badge.good{color:var(--mark)}.badge.poor{color:var(--bad)}.badge.fair{color:var(--so-so)}
.tag{font-size:12.5px;font-weight:650}
.tag.good{color:var(--good)}.tag.poor{color:var(--bad)}
.plot{display:block;width:100%;height:auto;overflow:visible}
.plot text{fill:var(--ink);font-size:12px;font-family:inherit}
.plot .dim{fill:var(--dim)}.plot .small{font-size:11px}.plot .end{text-anchor:end}
.plot .mid{text-anchor:middle}.plot .bold{font-weight:650}
.plot .mono{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:11.5px}
.plot .rule{stroke:var(--line);stroke-width:1}.plot .axis{stroke:var(--dim);stroke-width:1}
.plot .limit{stroke:var(--refused);stroke-width:1.5;stroke-dasharray:5 4}
.plot .limit-text{fill:var(--refused);font-size:11px}
.plot .good{fill:var(--good)}.plot .poor{fill:var(--bad)}.plot .track{fill:var(--track)}
.plot .even{stroke:var(--dim);stroke-width:1.2;stroke-dasharray:3 3;fill:none}
.plot .refused{fill:var(--refused)}
details{margin-top:8px}summary{cursor:pointer;font-weight:600}
footer{color:var(--dim);font-size:13px;margin-top:26px}
@media (max-width:820px){.pair{grid-template-columns:1fr}main{padding:18px 12px}}
@media print{body{background:#fff}.card{break-inside:avoid}}
"""


def style() -> str:
    light, dark = _theme("light"), _theme("dark")
    dashes = "".join(
        f".plot .s{index}{{fill:none;stroke-width:2.2;stroke:var(--s{index});"
        f"stroke-dasharray:{dash}}}.plot .f{index}{{fill:var(--s{index})}}"
        for index, dash in enumerate(DASHES)
    )
    heat = "".join(
        f".plot .h{step}{{fill:var(--h{step});shape-rendering:crispEdges}}"
        for step in range(STEPS + 1)
    )
    return (
        f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
        f"{RULES}{dashes}{heat}"
    ).replace("\n", "")


def _theme(name: str) -> str:
    colours = dict(_PAINT[name])
    colours |= {f"s{index}": colour for index, colour in enumerate(SERIES[name])}
    colours |= {f"h{step}": heat_colour(step, name) for step in range(STEPS + 1)}
    return "".join(f"--{key}:{value};" for key, value in colours.items())
