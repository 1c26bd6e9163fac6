#!/usr/bin/env bash
# kubo.sh [path]: builds the stock kubo that serves as the public DHT of IPFS in tests, from the Go module proxy, once a version. With
# "path" it builds nothing and prints where the program is.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's|^\s*github.com/ipfs/kubo \(v[^ ]*\).*|\1|p' tools/kubo/go.mod)
program=$PWD/.tools/kubo-$version
if [ "${1:-}" = path ]; then
	echo "$program"
	exit 0
fi
if [ -x "$program" ]; then
	exit 0
fi
echo "kubo: building kubo $version, once (a few minutes)"
mkdir -p .tools
cd tools/kubo
CGO_ENABLED=0 nice -n 10 go build -trimpath -o "$program" github.com/ipfs/kubo/cmd/ipfs
