"""Numbers as people read them, with their units."""

import html

NBSP = "\N{NO-BREAK SPACE}"


def esc(text: object) -> str:
    return html.escape(str(text), quote=True)


def breakable(key: str) -> str:
    """The name of a key as HTML that may break where its parts meet."""
    return esc(key).replace("+", "+<wbr>").replace(",", ",<wbr>")


def number(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) >= 1e7:
        return f"{value / 1e6:,.0f} M" if abs(value) < 1e12 else "unlimited"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"


def percent(share: float) -> str:
    if share == 0:
        return f"0{NBSP}%"
    if share < 0.001:
        return f"<{NBSP}0.1{NBSP}%"
    return f"{share * 100:.{1 if share < 0.1 else 0}f}{NBSP}%"


def money(dollars: float | None) -> str:
    if dollars is None:
        return "–"
    return f"${dollars:,.2f}" if dollars < 100 else f"${dollars:,.0f}"


def days(count: float | None) -> str:
    if count is None:
        return "–"
    if count <= 0:
        return "now"
    if count < 1 / 24:
        return "within the hour"
    if count < 2:
        return f"{count * 24:,.0f} hours"
    if count < 90:
        return f"{count:,.0f} days"
    return f"{count / 30.4:,.0f} months" if count < 730 else f"{count / 365:,.1f} years"


def seconds(ms: float) -> str:
    return f"{ms:,.0f} ms" if ms < 1000 else f"{ms / 1000:,.1f} s"


def ticks(top: float, wanted: int = 4) -> list[float]:
    """Round numbers from zero to at least `top`."""
    if top <= 0:
        return [0.0, 1.0]
    step = 10.0 ** (len(f"{int(top / wanted)}") - 1) if top / wanted >= 1 else 10.0**-6
    while True:
        for factor in (1, 2, 2.5, 5):
            if step * factor * wanted >= top:
                each = step * factor
                count = int(-(-top // each))
                return [each * index for index in range(count + 1)]
        step *= 10


def clipped(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1] + "…"
