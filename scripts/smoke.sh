#!/usr/bin/env bash
# smoke.sh: shows on this machine, as root, that the whole circle closes: a lab of three rigs, a job on a leased card, a bill
# signed by both sides that anyone can check, and nothing left behind. Uses bin/haggle and bin/haggled.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

haggle=$PWD/bin/haggle
work=$(mktemp -d /tmp/smoke.XXXXXX)
export HAGGLE_HOME=$work/lab
export LC_ALL=C # one order of sorting
up=no
begun=$SECONDS

finish() {
	local code=$?
	trap - EXIT INT TERM
	if [ "$up" = yes ]; then
		timeout 60 "$haggle" lab down >"$work/last-down" 2>&1 || { echo "lab down failed too:" && cat "$work/last-down"; }
	fi
	rm -rf --one-file-system "$work"
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

ok() { printf 'ok - %s (%d s)\n' "$1" $((SECONDS - begun)); }

fail() {
	printf 'not ok - %s\n' "$1"
	for stream in out err; do
		printf -- '--- std%s of the last command\n' "$stream"
		tail -c 4000 "$work/$stream" 2>/dev/null
	done
	find "$HAGGLE_HOME" -name '*.log' -type f 2>/dev/null | while read -r log; do
		printf -- '--- the end of %s\n' "$log"
		tail -n 30 "$log"
	done
	exit 1
}

# try CODE SENTENCE COMMAND...: runs a command with its output in $work/out and $work/err and wants the exit code.
try() {
	local want=$1 sentence=$2 code
	shift 2
	timeout "${SMOKE_LIMIT:-180}" "$@" >"$work/out" 2>"$work/err" </dev/null
	code=$?
	[ "$code" -eq "$want" ] || fail "$sentence: exit code $code, want $want: $*"
}

# wants FILE PATTERN SENTENCE: the last command's out or err has a line like that.
wants() { grep -E -q -e "$2" "$work/$1" || fail "$3: nothing like \"$2\" in std$1"; }

[ "$(id -u)" -eq 0 ] || { echo "smoke: run it as root, it starts containers" >&2; exit 1; }
if [ ! -x "$haggle" ] || [ ! -x bin/haggled ]; then
	echo "smoke: bin/haggle or bin/haggled is missing: run make build" >&2
	exit 1
fi
scripts/leftovers.sh "$work/before" || exit 1

up=yes
try 0 "the lab starts" "$haggle" lab up
wants out "export HAGGLE_HOME=.*$HAGGLE_HOME" "lab up says how to reach the lab"
ok "the lab is up"

try 0 "offers are listed" "$haggle" offers 'gpu_name=RTX_4090' --json
wants out 'RTX_4090' "at least one RTX 4090 is offered"
wants out 'SIM-|[Ss]imulated' "the card is marked as simulated"
ok "an RTX 4090 is offered, and marked as simulated"

try 2 "an unknown field is refused" "$haggle" offers 'gpu_nam=RTX_4090'
wants err 'gpu_name' "the error names the nearest field"
try 125 "run refuses an unknown field" "$haggle" run 'gpu_nam=RTX_4090' --image lab --for 10m --budget 1.00 -- train
wants err 'gpu_name' "the error names the nearest field"
try 125 "an unknown image is refused" "$haggle" run 'gpu_name=RTX_4090' --image nosuch --for 10m --budget 1.00 -- train
ok "a wrong field and an unknown image are refused, the nearest field is named"

try 0 "a job runs" "$haggle" run 'gpu_name=RTX_4090' --image lab --for 10m --budget 1.00 -- train --steps 20
wants out '^step 1/20 loss ' "the log has the first step"
wants out '^step 20/20 loss ' "the log has the last step"
[ "$(grep -c '^step ' "$work/out")" -eq 20 ] || fail "the log has each of the 20 steps once"
ok "a job ran, its log was streamed whole and its exit code is 0"
try 0 "leases are listed" "$haggle" leases --json
lease=$(grep -E -o '"(id|lease)": *"[^"]+"' "$work/out" | head -n 1 | cut -d '"' -f 4)
[ -n "$lease" ] || fail "the lease is listed with its id"

try 7 "a job's own exit code comes back" \
	"$haggle" run 'gpu_name=RTX_4090' --image lab --for 10m --budget 1.00 -- train --steps 2 --exit 7
ok "a job's own exit code, 7, comes back"

try 0 "receipts are listed" "$haggle" receipts "$lease"
wants out '[Ff]inal|FINAL' "the last receipt is final"
evidence=$work/lease.evidence
try 0 "the bill is exported" "$haggle" export "$lease" -o "$evidence"
[ -s "$evidence" ] || fail "the evidence file is empty"
ok "the bill of the first job is exported, $(stat -c %s "$evidence") bytes"

# A stranger: no network, not even loopback, an empty home, no agent to ask and none started.
mkdir "$work/stranger"
stranger=(unshare --net env HAGGLE_HOME="$work/stranger" "$haggle" verify)
try 0 "a stranger verifies the bill" "${stranger[@]}" "$evidence"
if pgrep -f "$work/stranger" >/dev/null || [ -n "$(find "$work/stranger" -type s)" ]; then
	fail "verify started an agent"
fi
ok "verify agrees, with no agent and no network"

size=$(stat -c %s "$evidence")
changed=$work/changed.evidence
flips=0
for part in $(seq 0 23) 24; do
	offset=$((part == 24 ? size - 1 : size * part / 24))
	byte=$(od -An -tu1 -j "$offset" -N 1 "$evidence" | tr -d ' ')
	cp "$evidence" "$changed"
	printf '%b' "\\0$(printf %o $((byte ^ (1 << (part % 8)))))" | dd of="$changed" bs=1 seek="$offset" conv=notrunc status=none
	cmp -s "$evidence" "$changed" && fail "byte $offset was not changed"
	try 2 "a changed byte at $offset of $size is found" "${stranger[@]}" "$changed"
	cat "$work/out" "$work/err" >"$work/both"
	grep -E -i -q 'check|signature|signed|canonical|format|digest|hash|chain|receipt|terms|header|evidence' "$work/both" ||
		fail "verify names the check that a changed byte at $offset fails"
	flips=$((flips + 1))
done
ok "each of $flips changed bytes is found, and the failed check named"

try 0 "the lab stops" "$haggle" lab down
up=no
# The kernel may take a moment to free namespaces and loop devices: ask again, for 10 s at most.
rm -rf --one-file-system "$HAGGLE_HOME"
for _ in $(seq 20); do
	scripts/leftovers.sh "$work/after" || fail "what is left is listed"
	left=$(cd "$work" && for kind in before/*; do
		comm -13 "$kind" "after/${kind#before/}" | sed "s|^|${kind#before/}: |"
	done)
	[ -z "$left" ] && break
	sleep 0.5
done
if [ -n "$left" ]; then
	printf '%s\n' "$left"
	fail "the lab left something behind"
fi
ok "the lab is down and left nothing behind: $(cd "$work/after" && echo *)"
