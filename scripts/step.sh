#!/usr/bin/env bash
# step.sh NAME COMMAND...: runs one step of a check between a headline and the time that it took.
set -uo pipefail

name=$1
shift
printf '\n== %s\n' "$name"
begun=$SECONDS
"$@"
code=$?
if [ "$code" -eq 0 ]; then
	printf '== %s: ok, %d s\n' "$name" $((SECONDS - begun))
else
	printf '== %s: FAILED with %d, %d s\n' "$name" "$code" $((SECONDS - begun))
fi
exit "$code"
