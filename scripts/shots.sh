#!/usr/bin/env bash
# shots.sh: draws the screens of the real program into docs/screens. It starts a lab, presses keys in tmux as a user would and
# turns what the terminal shows into pictures. A user with eyes should look at each of them before it is committed.
# Uses the programs in BIN, which is bin; needs tmux and rsvg-convert.
set -euo pipefail
cd "$(dirname "$0")/.."

haggle=${BIN:-$PWD/bin}/haggle
to=$PWD/docs/screens
work=$(mktemp -d /tmp/hgshots.XXXX)
export HAGGLE_HOME=$work/lab
export LC_ALL=C.UTF-8 TERM=xterm-256color COLORTERM=
export HAGGLED_RULES_FIRST=2s HAGGLED_RULES_INTERVAL=5s # more than one receipt in a short job
unset NO_COLOR
tmux=(tmux -u -S "$work/tmux" -f /dev/null)

finish() {
	local code=$?
	trap - EXIT INT TERM
	"${tmux[@]}" kill-server 2>/dev/null || true
	"$haggle" lab down >"$work/down" 2>&1 || { cat "$work/down" >&2 && code=1; }
	rm -rf --one-file-system "$work"
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

screen() { "${tmux[@]}" capture-pane -p -t 0; }

# sees TEXT: waits until the screen shows a text, for 20 s at most.
sees() {
	for _ in $(seq 200); do
		if screen | grep -qF -e "$1"; then return; fi
		sleep 0.1
	done
	echo "shots: the screen does not show \"$1\":" >&2
	screen >&2
	exit 1
}

keys() { "${tmux[@]}" send-keys -t 0 "$@"; }
types() { "${tmux[@]}" send-keys -t 0 -l -- "$1"; }

size() {
	"${tmux[@]}" resize-window -t 0 -x "${1%x*}" -y "${1#*x}"
	local before now=
	for _ in $(seq 50); do # until two looks agree
		before=$now
		sleep 0.1
		now=$(screen)
		if [ -n "$now" ] && [ "$now" = "$before" ]; then return; fi
	done
}

# shot NAME SIZE...: draws the screen in some sizes and goes back to the first.
shot() {
	local name=$1 size file
	shift
	for size in "$@"; do
		size "$size"
		file=$to/$name-$size.png
		"${tmux[@]}" capture-pane -e -N -p -t 0 | "$work/shots" "${size%x*}" "${size#*x}" >"$work/shot.svg"
		rsvg-convert "$work/shot.svg" | "$work/shots" -pack >"$file"
		echo "${file#"$PWD"/}"
	done
	if [ $# -gt 1 ]; then size "$1"; fi
}

small=80x24 large=200x50
both=("$small" "$large")

go build -o "$work/shots" ./internal/shots
"$haggle" lab up >/dev/null
mkdir -p "$to"
rm -f "$to"/*.png

"${tmux[@]}" new-session -d -s 0 -x 80 -y 24 "$haggle"
"${tmux[@]}" set-option -g status off
sees "3 offers"
keys 2 && sees "You have no leases"
shot leases-empty "${both[@]}"

# What others see of a renter with a past: one job went well and one did not.
rent() { "$haggle" run "$@" >/dev/null 2>&1 || true; }
rent gpu_name=H100_SXM --image lab --for 10m --budget 1.00 -- train --steps 12 --exit 7
rent gpu_name=RTX_3090 --image lab --for 10m --budget 0.50 -- train --steps 25 --checkpoint 学習済み.json

keys 1 && sees "RTX 4090"
shot market "${both[@]}" 40x10 120x40
keys / && types "gpu_ram>=24 dph<0.40" && sees "2 of 3 offers"
shot market-filter "${both[@]}"
keys C-u && types "gpu_nam=RTX_4090" && sees "gpu_name"
shot market-error "${both[@]}"
keys C-u && types "gpu_ram>=48 dph<0.40" && keys Enter && sees "None of 3 offers"
shot market-nomatch "${both[@]}"
keys Escape && sees "RTX 4090" && keys f && sees "CHOOSE" && sees "Memory"
shot facets "${both[@]}" 40x10 120x40
keys Escape && sees "enter rent" && keys P && sees "What does a budget buy?" && types "2" && keys Enter && sees "cheapest"
shot plan "${both[@]}" 40x10
keys Escape && sees "RTX 4090" && keys Down && keys d && sees "esc back"
shot details "${both[@]}" 40x10
keys Enter && sees "whole price"
shot form "${both[@]}" 40x10
keys Enter && sees "y rent"
shot dialog "${both[@]}" 40x10
keys y && sees "running" && sees "signed by both" && sees "receipt 3"
shot leases "${both[@]}" 40x10 120x40
keys Down && sees "saved 学習済み.json"
shot leases-done "${both[@]}"
keys Up && sees "running " && keys Enter && sees "esc back"
shot log "${both[@]}"
keys Escape && sees "b receipts" && keys 3 && sees "✓ both"
shot receipts "${both[@]}" 40x10 120x40
keys 4 && sees "LATENCY"
shot peers "${both[@]}" 120x40
keys 5 && sees "OWNER"
shot money "${both[@]}" 40x10 120x40
keys 1 && keys '?' && sees "Keys of this page"
shot help "${both[@]}"
keys Escape && sees "enter rent" && keys 2 && sees "step "
kill -KILL "$("$haggle" agent status --json | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' | head -n 1)"
sees "agent away"
shot away "${both[@]}" 40x10
keys q

du -ch "$to"/*.png | tail -n 1
