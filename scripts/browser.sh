#!/usr/bin/env bash
# Every report in a real Chromium without a head: scripts/browser.sh target/release/forebay [--pictures DIR]
set -euo pipefail

forebay=$1
shift
here=$(cd "$(dirname "$0")/.." && pwd)
if ! command -v python3 >/dev/null; then
    echo "browser: SKIPPED, python3 is not installed"
    exit 0
fi
exec timeout --kill-after=10 900 python3 "$here/tests/browser/reports.py" --forebay "$forebay" "$@"
