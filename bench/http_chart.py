"""Groups of horizontal bars on a logarithmic scale, as an SVG that is read on light and dark pages.

Logarithmic, because what is compared lies four orders of magnitude apart; each bar has its number.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LEFT, RIGHT = 760, 210, 90
BAR, GAP, HEAD = 16, 20, 44
COLOURS = {"bare": "#9aa5b1", "vercel": "#d9822b"}
OURS = "#2b6cb0"
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#52606d}"
    ".title{font-weight:600;font-size:14px}.work{font-weight:600}"
    "@media(prefers-color-scheme:dark){text{fill:#cbd2d9}}"
)


@dataclass(frozen=True, slots=True)
class Bar:
    name: str
    value: float


def chart(groups: Mapping[str, Sequence[Bar]], title: str) -> str:
    values = [bar.value for bars in groups.values() for bar in bars if bar.value > 0]
    low = math.floor(math.log10(min(values))) if values else 0
    high = math.log10(max(values)) if values else 1
    scale = (WIDTH - LEFT - RIGHT) / max(high - low, 1e-9)
    y = HEAD
    parts = [f'<text x="16" y="24" class="title">{escape(title)}, logarithmic</text>']
    for work, bars in groups.items():
        parts.append(f'<text x="16" y="{y + 12}" class="work">{escape(work)}</text>')
        for bar in bars:
            long = max(1.0, (math.log10(max(bar.value, 10**low)) - low) * scale)
            colour = COLOURS.get(bar.name, OURS)
            parts += [
                f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(bar.name)}</text>',
                f'<rect x="{LEFT}" y="{y}" width="{long:.1f}" height="{BAR - 2}" rx="2" '
                f'fill="{colour}"/>',
                f'<text x="{LEFT + long + 6:.1f}" y="{y + 12}">{_shown(bar.value)}</text>',
            ]
            y += BAR + 2
        y += GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img" '
        f'aria-label="{escape(title)}">\n<style>{STYLE}</style>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
