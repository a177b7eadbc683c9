"""`python -m armillary.portal`, started by the server's keeper, which says the rest by standard
input: one line of JSON, then nothing until it ends."""

import json
import os
import sys
import tempfile


def main() -> None:
    # NiceGUI would keep a folder where the server was started. What is kept is in the browser.
    os.environ.setdefault("NICEGUI_STORAGE_PATH", tempfile.gettempdir())
    line = sys.stdin.readline()
    if not line:
        return
    from armillary.portal.hosting import host, told_from

    host(told_from(json.loads(line)))


if __name__ == "__main__":
    main()
