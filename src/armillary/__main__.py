"""`armillary` and `python -m armillary` are the command line.

The command line is imported by who runs it, not with this module: a spawned process imports its
parent's main module again.
"""


def main() -> None:
    from armillary.cli import main as run

    run()


if __name__ == "__main__":
    main()
