#!/bin/sh
# Make or refresh .venv so that it holds what a lock names, and this package:
# requirements.lock for development, or requirements.run.lock, two thirds of it, for `make run` alone.
# Called by `make`, only when the lock or pyproject.toml is newer than the last setup.
# PYTHON chooses the interpreter: `make setup PYTHON=python3.13`.
set -eu

python=${PYTHON:-python3}
lock=${1:-requirements.lock}
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

case $lock in
    requirements.run.lock) cost="about a minute and 0.6 GB" ;;
    *) cost="about 90 seconds and 0.9 GB, with what the tests need" ;;
esac
packages=$(grep -c '^[A-Za-z0-9]' "$lock")
echo "setup: installing $packages packages from $lock into .venv: $cost, once"
pip() {
    .venv/bin/python -m pip --quiet --disable-pip-version-check --no-input "$@"
}
export PIP_ROOT_USER_ACTION=ignore PIP_NO_WARN_SCRIPT_LOCATION=1
# One line that grows: what pip says of each package becomes a dot.
dots() {
    awk '/^ *(Downloading|Using cached)/ { printf "."; fflush() } /^Installing/ { printf " unpacking"; fflush() }
         /^ERROR/ { print } END { print "" }'
}
{ .venv/bin/python -m pip --disable-pip-version-check --no-input \
      install --progress-bar off --require-hashes -r "$lock" 2>&1 || echo "ERROR: setup"; } | tee .venv/setup.log | dots
! grep -q '^ERROR: setup' .venv/setup.log || fail "the locked packages could not be installed; .venv/setup.log has the details."
# The build backend is in the lock too, so nothing outside the lock is fetched here.
pip install --no-deps --no-build-isolation --editable . || fail "armillary itself could not be installed; see above."
# Where Python may not write bytecode, every start would compile everything again: half a second.
.venv/bin/python -m compileall -q src || fail "armillary's modules could not be compiled; see above."
