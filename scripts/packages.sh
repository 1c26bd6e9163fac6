#!/usr/bin/env bash
# packages.sh fast|heavy: our packages whose test binary is cheap to build, or those that link libp2p, SQLite or containerd. The
# simulators are heavy too: they have one goroutine, and the race detector makes it eight times slower. So is netlab, whose tests
# run our programs.
set -euo pipefail
cd "$(dirname "$0")/.."

want=${1:?fast or heavy}
heavy='github\.com/libp2p/go-libp2p|modernc\.org/sqlite|github\.com/containerd/containerd/v2/client'

# For each package, what its test binary links; a package without tests counts with its own imports.
go list -test -f '{{if not .ForTest}}{{.ImportPath}} {{join .Deps " "}}{{end}}' ./... |
	awk -v want="$want" -v heavy="^($heavy)\$" '
		{
			name = $1; sub(/\.test$/, "", name); seen[name] = 1
			for (i = 2; i <= NF; i++) if ($i ~ heavy) is_heavy[name] = 1
		}
		END { for (name in seen) if ((name in is_heavy || name ~ /\/(market\/sim|internal\/netsim|internal\/netlab)$/) == (want == "heavy")) print name }' | sort
