"""`python -m armillary` is the command line."""

from armillary.cli import main

main()
