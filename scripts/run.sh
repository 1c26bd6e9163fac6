#!/usr/bin/env bash
# run.sh: what `make run` does: builds, starts a lab on this machine and opens its market on the terminal. Jobs are real
# containers where that can be; ENGINE=process or ENGINE=containerd chooses.
set -euo pipefail
cd "$(dirname "$0")/.."

engine=${ENGINE:-}
why=
if [ -z "$engine" ]; then
	engine=containerd
	if [ "$(uname -s)" != Linux ]; then
		why="this is not Linux"
	elif [ "$(id -u)" -ne 0 ] && ! { command -v sudo >/dev/null && sudo -v; }; then
		why="there is no root here"
	elif ! scripts/setup.sh; then
		why="what containers need is not installed"
	fi
	if [ -n "$why" ]; then engine=process; fi
elif [ "$engine" = containerd ]; then
	scripts/setup.sh
fi
if [ "$engine" = process ]; then
	echo "Jobs are plain processes here, marked NO ISOLATION${why:+: $why}."
	${MAKE:-make} build-haggle
else
	${MAKE:-make} build
fi
ENGINE=$engine exec scripts/first-job.sh
