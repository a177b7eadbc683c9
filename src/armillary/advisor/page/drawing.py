"""Elements of drawings, as text. Colours come from classes only, so that dark and print work."""

from collections.abc import Iterable, Sequence

from armillary.advisor.page.words import esc


def svg(width: float, height: float, body: Iterable[str], label: str, name: str) -> str:
    """`label` is what a screen reader says; `name` is how tests and links find the drawing."""
    return (
        f'<svg class="plot" id="{esc(name)}" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{esc(label)}" preserveAspectRatio="xMinYMin meet">{"".join(body)}</svg>'
    )


def text(x: float, y: float, content: object, kind: str = "", turn: float | None = None) -> str:
    turned = f' transform="rotate({turn:g} {x:.1f} {y:.1f})"' if turn is not None else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}"{turned}>{esc(content)}</text>'


def rect(
    x: float, y: float, width: float, height: float, kind: str, title: str = "", round_: float = 0
) -> str:
    corner = f' rx="{round_:g}"' if round_ else ""
    shape = (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}" '
        f'height="{max(0.0, height):.1f}" class="{kind}"{corner}'
    )
    return f"{shape}><title>{esc(title)}</title></rect>" if title else f"{shape}/>"


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def path(points: Sequence[tuple[float, float]], kind: str, title: str = "") -> str:
    steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    tip = f"<title>{esc(title)}</title>" if title else ""
    return f'<path d="M{steps}" class="{kind}">{tip}</path>'


def dot(x: float, y: float, radius: float, kind: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{kind}"/>'
