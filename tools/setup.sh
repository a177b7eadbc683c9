#!/bin/sh
# Make or refresh .venv so that it holds exactly what requirements.lock names, and this package.
# Called by `make setup`, only when the lock or pyproject.toml is newer than the last setup.
# PYTHON chooses the interpreter: `make setup PYTHON=python3.13`.
set -eu

python=${PYTHON:-python3}
modern='import sys; raise SystemExit(sys.version_info < (3, 11))'

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

if ! { [ -x .venv/bin/python ] && .venv/bin/python -c "$modern" \
       && .venv/bin/python -m pip --version; } >/dev/null 2>&1; then
    command -v "$python" >/dev/null 2>&1 || fail "$python is not installed. Armillary needs Python 3.11 or newer."
    "$python" -c "$modern" || fail "$("$python" --version) is too old. Armillary needs Python 3.11 or newer;" \
        "name one with 'make setup PYTHON=python3.11'."
    "$python" -c 'import venv, ensurepip' 2>/dev/null || fail "$python has no venv or ensurepip module." \
        "On Debian and Ubuntu: apt install python3-venv."
    echo "setup: making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv || fail "$python could not make .venv; see above."
fi

echo "setup: installing from requirements.lock"
pip() {
    .venv/bin/python -m pip --quiet --disable-pip-version-check --no-input "$@"
}
export PIP_ROOT_USER_ACTION=ignore PIP_NO_WARN_SCRIPT_LOCATION=1
pip install --require-hashes -r requirements.lock || fail "the locked packages could not be installed; see above."
# The build backend is in the lock too, so nothing outside the lock is fetched here.
pip install --no-deps --no-build-isolation --editable . || fail "armillary itself could not be installed; see above."
# Where Python may not write bytecode, every start would compile everything again: half a second.
.venv/bin/python -m compileall -q src || fail "armillary's modules could not be compiled; see above."
