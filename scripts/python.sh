#!/usr/bin/env bash
# The Python package: its environment in target/python, its module, its wheel and its tests.
#
#   scripts/python.sh env       the virtual environment target/python with maturin and what the tests use
#   scripts/python.sh develop   and the package in it as it stands in python/, with the module of the profile `dev`
#   scripts/python.sh studies   the same, and every study in its quick form; commands and tutorials find the environment.
#                               Says so and ends with 0 where PyPI, which the environment is made from, cannot be had
#   scripts/python.sh wheel     the wheel and the source distribution in target/wheels, and the wheel in the environment
#   scripts/python.sh zig       and zig, by which wheels and programs for old systems are built, in target/python
#   scripts/python.sh wheels TRIPLE...  wheels for manylinux, GLIBC= or newer, by zig; and the source distribution
#   scripts/python.sh test      mypy and pytest on the package, and the wheel in clean environments of the oldest and the
#                               newest CPython that are here
#   scripts/python.sh sdist     builds the wheel from the source distribution alone, and tries it (some minutes)
#
# STUDIES=no: `test` leaves out what `studies` has run. AS_TESTED=1: the module, by the profile `dev`, of the very crates that
# `make test` has built (scripts/cargo_as_tested.sh), where all of them are compiled again otherwise.
# PYTHON: the interpreter, python3 by default; 3.10 or later. PROFILE: Cargo's profile of `develop`; WHEEL_PROFILE: of `wheel`.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
env=$(realpath -m target/python)
wheels=$(realpath -m target/wheels)

# maturin's cargo.
[ -z "${AS_TESTED:-}" ] || export CARGO=$PWD/scripts/cargo_as_tested.sh

fail() {
    echo "python: $*" >&2
    exit 2
}

environment() { # 1: it cannot be made
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
        fail "'$python' is missing or older than 3.10; install Python 3.10 or later, or name one: PYTHON=/usr/bin/python3.12"
    if ! "$python" -c 'import ensurepip' 2>/dev/null; then
        scripts/setup.sh python || return 1
    fi
    # Another interpreter, or other requirements, want another environment.
    local stamp
    stamp="$("$python" -V 2>&1) $(cksum <python/requirements-test.txt)"
    if [ "$(cat "$env/requirements" 2>/dev/null)" != "$stamp" ]; then
        echo "python: making the environment target/python"
        rm -rf "$env"
        "$python" -m venv "$env" || return 1
        "$env/bin/python" -m pip install --quiet --disable-pip-version-check -r python/requirements-test.txt || return 1
        echo "$stamp" >"$env/requirements"
    fi
}

need_environment() {
    environment || fail "the packages of python/requirements-test.txt cannot be installed in target/python"
}

develop() {
    need_environment
    VIRTUAL_ENV=$env CARGO_TARGET_DIR=$target "$env/bin/maturin" develop --quiet --locked \
        --manifest-path python/Cargo.toml --profile "${PROFILE:-dev}"
}

of_studies=(tests/test_study.py tests/test_figures.py tests/test_notebooks.py)

studies() {
    if ! environment; then
        echo "python: SKIPPED, what the studies use cannot be installed here (python/requirements-test.txt, from PyPI)"
        return
    fi
    develop
    (cd python && "$env/bin/python" -m pytest -q "${of_studies[@]}")
}

# A source distribution has the crates; what they take from outside of their folders when they are compiled is added.
source_distribution() {
    local said
    said=$("$env/bin/maturin" sdist --manifest-path python/Cargo.toml --out "$wheels" 2>&1) || fail "no source distribution: $said"
    "$env/bin/python" scripts/python_sdist.py "$wheels"/forebay-*.tar.gz
}

wheel() {
    need_environment
    rm -rf "$wheels" && mkdir -p "$wheels"
    CARGO_TARGET_DIR=$target "$env/bin/maturin" build --locked --manifest-path python/Cargo.toml \
        --profile "${WHEEL_PROFILE:-quick}" --out "$wheels" --interpreter "$env/bin/python"
    source_distribution
    "$env/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheels"/forebay-*.whl
    ls -l "$wheels" | awk 'NR > 1 { printf "python: %s, %.1f MB\n", $9, $5 / 1e6 }'
}

zig() {
    need_environment
    "$env/bin/python" -m pip install --quiet --disable-pip-version-check -r python/requirements-release.txt ||
        fail "the packages of python/requirements-release.txt cannot be installed in target/python"
}

# Each for the C library GLIBC and newer ones: maturin refuses a module that wants more.
wheels() { # triples
    zig
    rm -rf "$wheels" && mkdir -p "$wheels"
    local triple own
    for triple in "$@"; do
        PATH=$env/bin:$PATH CARGO_TARGET_DIR=$target "$env/bin/maturin" build --quiet --locked --manifest-path python/Cargo.toml \
            --profile "${WHEEL_PROFILE:-quick}" --out "$wheels" --zig --target "$triple" --compatibility "manylinux_${GLIBC//./_}"
    done
    source_distribution
    for own in "$wheels"/forebay-*"$(uname -m)".whl; do
        [ ! -e "$own" ] || try_wheel "$own"
    done
}

# The CPythons of 3.10 and later on the PATH and of pyenv, oldest first: version and path.
interpreters() {
    {
        for name in python3 python3.{10..20}; do command -v "$name" || true; done
        ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 2>/dev/null || true
    } | while read -r one; do
        "$one" -c 'import sys; v = sys.version_info; assert v >= (3, 10) and sys.implementation.name == "cpython"
print("%d.%02d.%02d" % v[:3], sys.executable)' 2>/dev/null || true
    done | sort -u -k1,1
}

# The wheel $1 in clean environments: nothing but it is there.
try_wheel() {
    local all version path clean
    all=$(interpreters)
    { head -n 1 <<<"$all" && tail -n 1 <<<"$all"; } | sort -u | while read -r version path; do
        clean=$(mktemp -d)
        "$path" -m venv "$clean"
        "$clean/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps "$1"
        (cd "$clean" && "$clean/bin/python" "$OLDPWD/python/tests/smoke.py" "$clean/bin/forebay")
        echo "python: the wheel works with CPython $version"
        rm -rf "$clean"
    done
}

tests() {
    [ -e "$(echo "$wheels"/forebay-*.whl)" ] || wheel
    develop
    (cd python && "$env/bin/mypy" forebay)
    local left_out=()
    [ "${STUDIES:-}" != no ] || left_out=("${of_studies[@]/#/--ignore=}")
    (cd python && "$env/bin/python" -m pytest -q tests "${left_out[@]}")
    (cd tests/peers && FOREBAY=$env/bin/forebay "$env/bin/python" -m pytest -q)
    try_wheel "$(echo "$wheels"/forebay-*.whl)"
}

sdist() {
    need_environment
    mkdir -p "$wheels"
    rm -f "$wheels"/forebay-*.tar.gz
    source_distribution
    local out
    out=$(mktemp -d)
    PATH=$env/bin:$PATH CARGO_TARGET_DIR=$target/sdist "$env/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
        --config-settings=build-args="--profile quick" --wheel-dir "$out" "$wheels"/forebay-*.tar.gz
    try_wheel "$(echo "$out"/forebay-*.whl)"
    rm -rf "$out"
}

case "${1:-}" in
env) need_environment ;;
develop) develop ;;
studies) studies ;;
wheel) wheel ;;
zig) zig ;;
wheels) shift && wheels "$@" ;;
test) tests ;;
sdist) sdist ;;
*) fail "expected env, develop, studies, wheel, zig, wheels, test or sdist, found '${1:-}'" ;;
esac
