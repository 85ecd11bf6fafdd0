#!/usr/bin/env bash
# Builds the playground, the simulator as one HTML file, into target/playground/index.html.
#
#   scripts/playground.sh          the file
#   scripts/playground.sh check    whether its crate and those behind it compile for a browser (seconds)
#
# It needs Rust's library for WebAssembly, which rustup fetches, and wasm-bindgen, which cargo builds into target/tools once
# (some minutes), in the version that the module is built with. Where they cannot be had, this fails and says how to get
# them; PLAYGROUND=skip, for machines without a registry, says so and goes on.
set -euo pipefail
cd "$(dirname "$0")/.."
triple=wasm32-unknown-unknown
cargo=${CARGO:-cargo}
version=$(grep -A1 '^name = "wasm-bindgen"$' Cargo.lock | sed -n 's/^version = "\(.*\)"/\1/p')

give_up() {
    if [ "${PLAYGROUND:-}" = skip ]; then
        echo "playground: SKIPPED (PLAYGROUND=skip), $1"
        exit 0
    fi
    echo "playground: $1; to get it: $2; or set PLAYGROUND=skip to go on without" >&2
    exit 2
}

command -v python3 >/dev/null || give_up "python3 is missing" "apt-get install python3"
if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$triple" ]; then
    command -v rustup >/dev/null || give_up "Rust's library for $triple is missing" "install Rust by rustup, then rustup target add $triple"
    echo "playground: fetching Rust's library for $triple"
    rustup target add "$triple" 2>/dev/null || give_up "Rust's library for $triple cannot be had here" "rustup target add $triple"
fi

if [ "${1:-}" = check ]; then
    exec "$cargo" check --quiet --locked --package forebay-playground --target "$triple"
fi

bindgen=
for tool in wasm-bindgen "$PWD/target/tools/bin/wasm-bindgen"; do
    # The module and the program must be of the very same version.
    [ "$("$tool" --version 2>/dev/null)" = "wasm-bindgen $version" ] && bindgen=$tool && break
done
if [ -z "$bindgen" ]; then
    echo "playground: building wasm-bindgen $version into target/tools"
    install=(install --quiet --debug --locked "wasm-bindgen-cli@$version" --root target/tools)
    "$cargo" "${install[@]}" || give_up "wasm-bindgen cannot be had here" "cargo ${install[*]}"
    bindgen=target/tools/bin/wasm-bindgen
fi

"$cargo" build --quiet --profile quick --locked --package forebay-playground --target "$triple"
"$bindgen" --target no-modules --no-typescript --remove-name-section --remove-producers-section \
    --out-dir target/playground/module "${CARGO_TARGET_DIR:-target}/$triple/quick/forebay_playground.wasm"
CARGO_BUILD_TARGET=$triple scripts/third_party.py --of-package forebay-playground >target/playground/module/third-party.txt
exec scripts/playground.py target/playground/module
