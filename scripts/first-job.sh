#!/usr/bin/env bash
# first-job.sh: a lab on this machine and a first job in it, step by step. The lab stays up afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
	echo "A lab starts real containers, so it needs root here."
	exec sudo -H "$0"
fi
PATH=$PWD/bin:$PATH

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

printf '%s\n' \
	"haggle rents GPUs from peer to peer. This is a whole market on your machine: three rigs with simulated cards and you as" \
	"the renter, on loopback only. The cards are simulated; the network, the containers, the signatures and the bill are real."

show "Start the lab." haggle lab up | tee "$out"
if [ -z "${HAGGLE_HOME:-}" ]; then
	# lab up prints the line that ties haggle to the lab; without it haggle means the real market.
	home=$(sed -n 's/^ *export HAGGLE_HOME=//p' "$out" | tail -n 1 | tr -d "'\"")
	if [ -z "$home" ]; then
		echo "first-job: lab up did not print an export line" >&2
		exit 1
	fi
	show "Tie this shell to the lab." export HAGGLE_HOME="$home"
fi

show "What is for rent? Ask for a model, as you would anywhere." haggle offers gpu_name=RTX_4090
show "Rent one for ten minutes at most and one dollar at most, and train a small model on it. The log comes as it is written." \
	haggle run gpu_name=RTX_4090 --image lab --for 10m --budget 1.00 -- train --steps 20
show "What did it cost? Both sides signed each line." haggle receipts

lease=$(haggle leases --json | grep -E -o '"(id|lease)": *"[^"]+"' | head -n 1 | cut -d '"' -f 4)
show "Take the bill with you." haggle export "$lease" -o "$evidence"
show "Anyone can check it, with no account, no agent and no network." haggle verify "$evidence"

printf '%s\n' \
	"" \
	"That is the circle. The lab stays up; to go on in it:" \
	"  \$ export HAGGLE_HOME=$HAGGLE_HOME" \
	"  \$ export PATH=$PWD/bin:\$PATH" \
	"  \$ haggle leases" \
	"and to take it down, with all that it started:" \
	"  \$ haggle lab down"
