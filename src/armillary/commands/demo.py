"""`armillary demo`: its options. What it does is in `demonstration.py`."""

import typer


def add_commands(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    items: int = typer.Option(4_000, min=100, max=200_000, help="How many readings to write."),
) -> None:
    """Fill containers under three partition keys and draw how the data spreads."""
    from rich.console import Console

    from armillary.commands.demonstration import run_demo

    run_demo(Console(), items)
