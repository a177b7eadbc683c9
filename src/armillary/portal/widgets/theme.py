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
        --code: #eef1f6; --field: #ffffff;
        --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas,
        "DejaVu Sans Mono", monospace; }
.body--dark { --line: #2b3340; --card: #181e28; --page: #10141b; --ink: #e3e8f0; --faint: #9aa7bd;
              --code: #222a36; --field: #131922; }
body { background: var(--page) !important; color: var(--ink);
       font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans",
       sans-serif; font-size: 14px; }
.q-btn, .q-tab, .q-field { font-family: inherit; }
.q-btn .q-icon { font-size: 1.3em; }
.q-btn .on-left { margin-right: 6px; }
.body--dark .text-primary, .body--dark .q-field { --q-primary: #7DB8F0; }
.body--dark .text-negative { --q-negative: #F0997B; }
.body--dark .q-table tbody td, .body--dark .q-table thead th { border-color: var(--line); }
.nicegui-content { padding: 0; }
.a-header { background: #111827 !important; color: #eef2f8; height: 52px; padding: 0 20px; }
.a-header a { color: #b9c4d6; text-decoration: none; padding: 6px 12px; border-radius: 6px;
              font-weight: 500; white-space: nowrap; }
.a-header a:hover { color: #fff; background: #1f2a3d; }
.a-header a.here { color: #fff; background: #27354d; }
a:focus-visible, .q-btn:focus-visible, .q-tab:focus-visible, [tabindex]:focus-visible {
  outline: none; box-shadow: 0 0 0 2px #3d8fd1; } /* Quasar forbids outlines of its buttons */
.q-field :focus-visible { box-shadow: none; }
.a-main { width: 100%; max-width: 1440px; margin: 0 auto; padding: 20px; gap: 16px; }
.a-card { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
          padding: 16px; width: 100%; box-shadow: none; gap: 10px; }
.a-title { font-size: 15px; font-weight: 600; line-height: 1.3; }
.a-page-title { font-size: 20px; font-weight: 650; line-height: 1.3; letter-spacing: -0.01em; }
.a-faint { color: var(--faint); font-size: 13px; }
.a-mono { font-family: var(--mono); font-size: 13px; }
.a-key { font-family: var(--mono); }
.a-number { font-variant-numeric: tabular-nums; }
.a-stat .a-value { font-size: 20px; font-weight: 600; font-variant-numeric: tabular-nums;
                   line-height: 1.2; }
.a-cut { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0;
         max-width: 100%; }
.a-pre { font-family: var(--mono); font-size: 13px; white-space: pre; overflow: auto;
         background: var(--code); border-radius: 8px; padding: 12px; margin: 0; line-height: 1.5; }
.a-side { width: 280px; flex: none; max-height: calc(100vh - 92px); overflow: auto; }
.a-tree-database { margin-top: 6px; }
.a-tree-row { display: flex; align-items: center; gap: 8px; width: 100%; color: var(--ink);
              text-decoration: none; padding: 5px 8px 5px 24px; border-radius: 6px; }
.a-tree-row:hover { background: var(--code); }
.a-tree-row.here { background: color-mix(in srgb, #1F5FA8 16%, transparent); font-weight: 600; }
.a-grid { max-height: 52vh; }
.a-grid .q-table thead th { position: sticky; top: 0; z-index: 1; background: var(--card);
                            font-size: 12px; color: var(--faint); font-weight: 600; }
.a-grid td { max-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
             font-family: var(--mono); font-size: 12.5px !important; }
.a-grid .q-table { table-layout: fixed; background: transparent; }
.q-table__card { background: transparent; color: inherit; }
.a-grid th.a-c-id { width: 27%; }
.a-grid th.a-c-key0, .a-grid th.a-c-key1, .a-grid th.a-c-key2 { width: 21%; }
.a-grid .a-c-rest { color: var(--faint); }
.a-item-link { color: #1F5FA8; text-decoration: none; }
.body--dark .a-item-link { color: #7DB8F0; }
.a-item-link:hover { text-decoration: underline; }
.a-editor { border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
.a-editor .cm-editor { height: 100%; font-size: 13px; }
.a-editor .cm-editor, .a-editor .cm-gutters { background: var(--field) !important; }
.a-editor .cm-activeLine, .a-editor .cm-activeLineGutter {
  background: color-mix(in srgb, #56B4E9 10%, transparent) !important; }
.a-editor .cm-scroller { font-family: var(--mono); }
.a-wrong { text-decoration: underline wavy #B3401B 2px; text-underline-offset: 3px;
           background: color-mix(in srgb, #B3401B 18%, transparent); }
.a-trouble { color: #B3401B; min-height: 20px; }
.body--dark .a-trouble { color: #F0997B; }
.a-dialog { background: var(--card); color: var(--ink); border-radius: 12px; padding: 20px;
            gap: 10px; max-width: 96vw !important; }
.a-rows { max-height: 60vh; }
.a-rows thead th { position: sticky; top: 0; z-index: 1; background: var(--card);
                   color: var(--faint); font-weight: 600; font-size: 12px; }
.a-rows td { font-family: var(--mono); font-size: 12.5px !important; max-width: 26rem;
             overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
             font-variant-numeric: tabular-nums; }
.a-panels { background: transparent; }
.a-panels .q-tab-panel { padding: 4px 0 0; }
.a-strip { gap: 2px; align-items: stretch; }
.a-strip > div { height: 14px; background: var(--code); border-radius: 3px; min-width: 1px; }
.a-strip > div.touched { background: #0072B2; }
.body--dark .a-strip > div.touched { background: #56B4E9; }
.a-history .q-btn__content { flex-wrap: nowrap; gap: 12px; width: 100%; color: var(--ink); }
.a-report { height: 80vh; border: 1px solid var(--line); border-radius: 8px; background: #fff; }
.a-track { flex: 1; height: 14px; background: var(--code); border-radius: 4px; overflow: hidden; }
.a-bar { height: 100%; border-radius: 4px; }
.a-error { border-left: 4px solid #B3401B; background: color-mix(in srgb, #B3401B 8%, transparent);
           border-radius: 6px; padding: 10px 14px; width: 100%; }
@media (max-width: 640px) {
  .a-main { padding: 10px; }
  .a-header { flex-wrap: wrap !important; gap: 4px 12px !important; height: auto;
              padding: 8px 12px; }
  .a-header [role=navigation] { order: 9; width: 100%; overflow-x: auto; }
  .a-header [data-testid=endpoint] { display: none; }
  .a-main .row:not(.a-strip) { flex-wrap: wrap !important; }
  .a-main .row > .nicegui-column:not(.a-stat), .a-main .row > .q-field:not(.a-faint) {
    flex: 1 1 100% !important; }
  .a-main .q-field { min-width: 0 !important; max-width: 100% !important; }
  .a-side { width: 100%; max-height: 40vh; }
}
@media (prefers-reduced-motion: reduce) {
  *, *::before, *::after { transition-duration: 0s !important; animation-duration: 0s !important;
                           animation-iteration-count: 1 !important; }
}
"""
