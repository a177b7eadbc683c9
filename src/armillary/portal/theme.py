"""Colours, the mark, and the few rules of style that all pages share.

The palette is that of Okabe and Ito, which people with any kind of colour vision can tell apart;
meaning is never in the colour alone.
"""

from typing import Final

BLUE: Final = "#0072B2"
ORANGE: Final = "#E69F00"
VERMILION: Final = "#D55E00"
GREEN: Final = "#009E73"
SKY: Final = "#56B4E9"
PURPLE: Final = "#CC79A7"
YELLOW: Final = "#F0E442"
GREY: Final = "#8A94A6"
SERIES: Final = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW)

#: Rings around a point: the armillary sphere.
MARK: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="none" stroke-width="2" '
    'role="img" aria-label="Armillary"><circle cx="16" cy="16" r="13" stroke="#56B4E9"/>'
    '<ellipse cx="16" cy="16" rx="13" ry="5" stroke="#E69F00" transform="rotate(-25 16 16)"/>'
    '<ellipse cx="16" cy="16" rx="5" ry="13" stroke="#9aa7bd" transform="rotate(-25 16 16)"/>'
    '<circle cx="16" cy="16" r="2.4" fill="#56B4E9" stroke="none"/></svg>'
)
FAVICON: Final = MARK

#: Quasar's colours by name.
COLOURS: Final = {
    "primary": "#1F5FA8",
    "secondary": "#3D4A5F",
    "accent": VERMILION,
    "positive": "#00795A",
    "negative": "#B3401B",
    "warning": "#9A6A00",
    "info": BLUE,
    "dark": "#171C25",
    "dark_page": "#10141B",
}

CSS: Final = """
:root { --line: #dfe3ea; --card: #ffffff; --page: #f5f6f9; --ink: #1d2430; --faint: #5d6879;
        --code: #eef1f6; --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas,
        "DejaVu Sans Mono", monospace; }
.body--dark { --line: #2b3340; --card: #181e28; --page: #10141b; --ink: #e3e8f0; --faint: #9aa7bd;
              --code: #222a36; }
body { background: var(--page) !important; color: var(--ink);
       font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans",
       sans-serif; font-size: 14px; }
.q-btn, .q-tab, .q-field { font-family: inherit; }
.nicegui-content { padding: 0; }
.a-header { background: #111827 !important; color: #eef2f8; height: 52px; padding: 0 20px; }
.a-header a { color: #b9c4d6; text-decoration: none; padding: 6px 12px; border-radius: 6px;
              font-weight: 500; }
.a-header a:hover { color: #fff; background: #1f2a3d; }
.a-header a.here { color: #fff; background: #27354d; }
.a-header a:focus-visible, .q-btn:focus-visible { outline: 2px solid #56B4E9; outline-offset: 2px; }
.a-main { width: 100%; max-width: 1440px; margin: 0 auto; padding: 20px; gap: 16px; }
.a-card { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
          padding: 16px; width: 100%; box-shadow: none; gap: 10px; }
.a-title { font-size: 15px; font-weight: 600; line-height: 1.3; }
.a-page-title { font-size: 20px; font-weight: 650; line-height: 1.3; letter-spacing: -0.01em; }
.a-faint { color: var(--faint); font-size: 13px; }
.a-mono { font-family: var(--mono); font-size: 13px; }
.a-number { font-variant-numeric: tabular-nums; }
.a-stat .a-value { font-size: 20px; font-weight: 600; font-variant-numeric: tabular-nums;
                   line-height: 1.2; }
.a-cut { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0; }
.a-pre { font-family: var(--mono); font-size: 13px; white-space: pre; overflow: auto;
         background: var(--code); border-radius: 8px; padding: 12px; margin: 0; line-height: 1.5; }
.a-error { border-left: 4px solid #B3401B; background: color-mix(in srgb, #B3401B 8%, transparent);
           border-radius: 6px; padding: 10px 14px; width: 100%; }
"""
