from collections.abc import Iterator

import pytest
from tests.support.nosql import Api
from tests.support.nosql import api as made


@pytest.fixture
def api() -> Iterator[Api]:
    with made() as one:
        yield one
