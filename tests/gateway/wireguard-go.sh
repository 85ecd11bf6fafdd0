#!/usr/bin/env bash
# Builds the newest wireguard-go that Go's module proxy has: tests/gateway/wireguard-go.sh DIRECTORY
#
# It wants a newer Go than Debian 12 has; one before 1.21 cannot fetch what it needs by itself, so the module that is
# the newer Go is fetched for it from the same proxy. Everything stays below DIRECTORY.
set -euo pipefail

directory=$(realpath -m "${1:?usage: wireguard-go.sh DIRECTORY}")
[ -x "$directory/wireguard" ] && exit 0
command -v go >/dev/null || {
    echo "wireguard-go: Go is not installed (scripts/setup.sh bench); going on without" >&2
    exit 0
}
mkdir -p "$directory"
export GOBIN=$directory GOPATH=$directory/go GOFLAGS=-modcacherw CGO_ENABLED=0
go=go
if [ "$(printf '%s\n' go1.21 "$(go env GOVERSION)" | sort -V | head -1)" != go1.21 ]; then
    case $(uname -m) in
    x86_64) arch=amd64 ;;
    aarch64) arch=arm64 ;;
    *) echo "wireguard-go: $(go env GOVERSION) is too old for it; going on without" >&2 && exit 0 ;;
    esac
    newer=golang.org/toolchain@v0.0.1-go1.23.12.linux-$arch
    root=$(cd "$directory" && go mod download -json "$newer" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
    [ -n "$root" ] && chmod -R +x "$root/bin" "$root/pkg/tool" && export GOROOT=$root && go=$root/bin/go
fi
GOTOOLCHAIN=auto "$go" install golang.zx2c4.com/wireguard@latest ||
    echo "wireguard-go: it could not be built; going on without" >&2
