#!/bin/sh
# Tests with the lowest versions of the direct dependencies that pyproject.toml allows, in .venv-floors. The versions are in
# requirements.floors.lock (`make lock`). Without a network nothing can be installed: it says so and is no failure.
set -eu

python=.venv-floors/bin/python
if [ ! -e .venv-floors/.stamp ] || [ requirements.floors.lock -nt .venv-floors/.stamp ]; then
    echo "floors: installing from requirements.floors.lock"
    .venv/bin/python -m uv venv --quiet --clear --python .venv/bin/python .venv-floors
    if ! .venv/bin/python -m uv pip install --quiet --python "$python" --require-hashes -r requirements.floors.lock; then
        echo "floors: SKIPPED, the packages could not be installed; see above."
        exit 0
    fi
    touch .venv-floors/.stamp
fi
# One or two files for each dependency. A new version's warnings about itself are not ours to mend here.
PYTHONPATH=$PWD/src exec "$python" -m pytest -p no:cacheprovider -p armillary.testing.pytest_plugin -W default \
    tests/contract tests/unit/encoding tests/unit/test_cli.py tests/unit/scripts/test_procedures.py tests/unit/query/functions \
    tests/unit/server/test_connection.py tests/unit/server/test_tls.py \
    tests/conformance/nosql/test_items.py tests/conformance/table/test_table_python.py \
    tests/conformance/mongo/test_pymongo.py tests/conformance/gremlin/test_reading.py
