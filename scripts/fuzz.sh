#!/usr/bin/env bash
# fuzz.sh TIME: runs each fuzz target of this repository for TIME, one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${1:?a time such as 10s}
git ls-files --cached --others --exclude-standard '*_test.go' |
	xargs grep -H '^func Fuzz' |
	sed 's/^\(.*\)\/[^/]*:func \(Fuzz[A-Za-z0-9_]*\).*/\1 \2/' |
	sort -u |
	while read -r folder target; do
		echo "== $folder $target"
		go test -vet=off -run='^$' -fuzz="^$target\$" -fuzzminimizetime=1x -fuzztime="$time" "./$folder" </dev/null
	done
