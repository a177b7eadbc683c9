"""A server that is never asked a query does not pay for the query language: 95 modules, 4 MB."""

import subprocess
import sys

SHOW = """
import sys
import armillary.api.nosql.service, armillary.api.control.service
print(*(one for one in sys.modules if one.startswith("armillary.query.sql")))
"""


def test_the_query_language_is_imported_with_the_first_query() -> None:
    done = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
