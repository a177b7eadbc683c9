"""`armillary` and `python -m armillary` are the command line.

Nothing is imported with this module: a spawned worker imports its parent's main module again. And
`serve` does not pass by the other commands, whose library is larger than the server.
"""

import gc
import sys


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        # What is imported stays, 42,000 objects of which 700 are garbage: none is looked at until
        # they are set apart (`server/heaps.py`).
        gc.set_threshold(100_000, 1_000_000)
        from armillary.server.command import main as serve

        sys.exit(serve(sys.argv[2:]))
    from armillary.cli import main as run

    run()


if __name__ == "__main__":
    main()
