#!/usr/bin/env bash
# first-job.sh: a lab on this machine, and on a terminal the market on its screen; elsewhere a first job on the command line,
# step by step. The lab stays up afterwards. ENGINE is what runs the jobs, containerd or process; the programs are in BIN.
set -euo pipefail
cd "$(dirname "$0")/.."

engine=${ENGINE:-containerd}
bin=${BIN:-$PWD/bin}
if [ "$engine" = containerd ] && [ "$(id -u)" -ne 0 ]; then
	echo "A lab with real containers needs root here; ENGINE=process does without both."
	exec sudo -H env ENGINE="$engine" BIN="$bin" ${HAGGLE_HOME:+HAGGLE_HOME="$HAGGLE_HOME"} "$0"
fi
PATH=$bin:$PATH

# show SENTENCE COMMAND...: says in plain words what comes, prints the command as one would type it, runs it.
show() {
	printf '\n%s\n' "$1"
	shift
	printf '  $'
	for word in "$@"; do
		case $word in
		*[!A-Za-z0-9_.,:/=+-]*) printf " '%s'" "$word" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
	printf '\n'
	"$@"
}

out=$(mktemp /tmp/first-job.XXXXXX)
evidence=first.evidence
trap 'rm -f "$out"' EXIT

real="the containers, "
if [ "$engine" = process ]; then real=; fi
printf '%s\n' \
	"haggle rents GPUs from peer to peer. This is a whole market on your machine:" \
	"three rigs with simulated cards and you as the renter, on loopback only. The" \
	"cards are simulated; the network, the ${real}the signatures and the bill are real."
screens=no
if [ -t 0 ] && [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
	screens=yes
	echo "On the screen: enter takes the offer, enter again shows the price, y rents;"
	echo "? lists the keys and q leaves."
fi

show "Start the lab." haggle lab up --engine "$engine" | tee "$out"
known=${HAGGLE_HOME:-}
if [ -z "$known" ]; then
	# lab up prints the line that ties haggle to the lab; without it haggle means the real market.
	known=$(sed -n 's/^ *export HAGGLE_HOME=//p' "$out" | tail -n 1 | tr -d "'\"")
	if [ -z "$known" ]; then
		echo "first-job: lab up did not print an export line" >&2
		exit 1
	fi
	show "Tie this shell to the lab." export HAGGLE_HOME="$known"
fi

# farewell SENTENCE COMMAND: how to come back, and how to leave nothing behind.
farewell() {
	printf '%s\n' \
		"" \
		"$1 The lab stays up, and jobs in it go on; to come back:" \
		"  \$ export HAGGLE_HOME=$HAGGLE_HOME" \
		"  \$ export PATH=$bin:\$PATH" \
		"  \$ $2" \
		"and to take it down, with all that it started:" \
		"  \$ haggle lab down"
}

if [ "$screens" = yes ]; then
	code=0
	haggle || code=$?
	farewell "That was the market." haggle
	exit "$code"
fi

show "What is for rent? Ask for a model, as you would anywhere." haggle offers gpu_name=RTX_4090
show "Rent one for ten minutes at most and one dollar at most, and train a small model on it. The log comes as it is written." \
	haggle run gpu_name=RTX_4090 --image lab --for 10m --budget 1.00 -- train --steps 20
show "What did it cost? Both sides signed each line." haggle receipts

lease=$(haggle leases --json | grep -E -o '"(id|lease)": *"[^"]+"' | head -n 1 | cut -d '"' -f 4)
show "Take the bill with you." haggle export "$lease" -o "$evidence"
show "Anyone can check it, with no account, no agent and no network." haggle verify "$evidence"

farewell "That is the circle." "haggle leases"
