#!/usr/bin/env bash
# units.sh: installs the programs and the service units into a folder of its own and has systemd's own checker read them: they
# must be well formed, and the unit that talks with the network must stay below an exposure of 3.0 of 10. Uses bin/haggle and bin/haggled.
set -euo pipefail
cd "$(dirname "$0")/.."

threshold=30 # tenths: systemd-analyze counts to 100
work=$(mktemp -d /tmp/units.XXXXXX)
trap 'rm -rf "$work"' EXIT

${MAKE:-make} --no-print-directory install PREFIX="$work" >"$work/installed"
for file in bin/haggle bin/haggled lib/systemd/system/haggled.service lib/systemd/system/haggled-helper.service \
	lib/sysusers.d/haggle.conf lib/tmpfiles.d/haggle.conf; do
	[ -f "$work/$file" ] || { echo "units: install left out $file" >&2; exit 1; }
done

units=("$work"/lib/systemd/system/*.service)
systemd-analyze verify --man=no "${units[@]}" >"$work/verify" 2>&1 || { cat "$work/verify"; exit 1; }
# It also reads the machine's other units; only what it says of ours counts.
if grep -E 'haggle' "$work/verify"; then
	echo "units: systemd finds fault with a unit" >&2
	exit 1
fi
for unit in "${units[@]}"; do
	starts=$(sed -n 's/^ExecStart=\([^ ]*\) .*/\1/p' "$unit")
	[ -x "$starts" ] || { echo "units: $unit starts $starts, which is not there" >&2; exit 1; }
done

systemd-analyze security --offline=true --threshold="$threshold" "$work/lib/systemd/system/haggled.service" >"$work/security" 2>&1 ||
	{ cat "$work/security"; echo "units: haggled.service is open too wide" >&2; exit 1; }
tail -n 1 "$work/security"

# The texts of users and files, as systemd would read them, changing nothing.
if command -v systemd-sysusers >/dev/null; then
	mkdir -p "$work/root/etc"
	systemd-sysusers --root="$work/root" "$work/lib/sysusers.d/haggle.conf" >"$work/sysusers" 2>&1 || { cat "$work/sysusers"; exit 1; }
	grep -q '^haggled:' "$work/root/etc/passwd" && grep -q '^haggle:.*haggled' "$work/root/etc/group" ||
		{ echo "units: sysusers.d does not make the user haggled in the group haggle" >&2; exit 1; }
fi
systemd-tmpfiles --root="$work/root" --create "$work/lib/tmpfiles.d/haggle.conf"
