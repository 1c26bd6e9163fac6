#!/usr/bin/env bash
# check.sh: runs inside the machine that vm.sh boots, as a unit of systemd. Its last line says whether all passed.
set -uo pipefail
cd /opt/haggle || exit 1
exec > >(tee /opt/haggle/result) 2>&1
export HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin CI=true

echo "Result of \`make vm\`, $(date -u +%Y-%m-%d): Debian $(cat /etc/debian_version), Linux $(uname -r), $(haggled version)"
echo "cgroup: $(stat -fc %T /sys/fs/cgroup), pid 1: $(cat /proc/1/comm), containerd: $(containerd --version | cut -d ' ' -f 3), runc: $(runc --version | head -n 1)"
bad=0
step() {
	local name=$1 begun=$SECONDS
	shift
	if "$@" >"/tmp/step.log" 2>&1; then
		echo "ok - $name ($((SECONDS - begun)) s)"
	else
		bad=$((bad + 1))
		echo "not ok - $name ($((SECONDS - begun)) s)"
		grep -a '^not ok' /tmp/step.log | sed 's/^/    /'
		tail -n 40 /tmp/step.log | sed 's/^/    /'
	fi
}

# until_true SECONDS COMMAND...: waits for a command to succeed.
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 1
	done
}

units() {
	systemd-sysusers && systemd-tmpfiles --create && systemctl daemon-reload || return
	systemctl start haggled-helper.service haggled.service || { journalctl -n 40 --no-pager -u haggled -u haggled-helper; return 1; }
	systemctl is-active haggled-helper.service haggled.service || return
	until_true 600 sh -c "haggled status | grep -q '^images *lab'" || { haggled status; journalctl -n 60 --no-pager -u haggled -u haggled-helper; return 1; }
	haggled status
	ps -o user=,args= -C haggled
	ps -o user=,args= -C haggled | grep -v '^root' | grep -q serve || { echo "serve runs as root"; return 1; }
	grep -E '^Cap(Eff|Prm)' "/proc/$(systemctl show -p MainPID --value haggled.service)/status"
	grep -q -E '^CapEff:\s+0+$' "/proc/$(systemctl show -p MainPID --value haggled.service)/status"
}

# The rig of the units takes a whole job from an agent on the same machine.
rented() {
	export HAGGLE_HOME=/var/lib/haggle-vm/renter
	local key
	key=$(haggled status --json | grep -o '12D3KooW[A-Za-z0-9]*' | head -n 1)
	[ -n "$key" ] || return
	mkdir -p "$HAGGLE_HOME"
	printf 'network = "lab-vm"\nbootstrap = ["/ip4/127.0.0.1/tcp/4701/p2p/%s"]\n' "$key" >"$HAGGLE_HOME/config.toml"
	until_true 240 sh -c 'haggle offers --json 2>/tmp/offers.err | grep -q RTX_4090' || { cat /tmp/offers.err; haggle status; haggled status; journalctl -n 30 --no-pager -u haggled -u haggled-helper; return 1; }
	haggle run 'gpu_name=RTX_4090' --image lab --for 10m --budget 1.00 -- train --steps 5 || return
	systemctl restart haggled-helper.service haggled.service || return
	until_true 240 haggled status >/dev/null 2>&1 || return
	until_true 240 haggle run 'gpu_name=RTX_4090' --image lab --for 10m --budget 1.00 -- train --steps 5 || return
	haggle agent stop
}

hostile() {
	cd tests || return
	HOSTILE_PROGRAMS=/opt/haggle/tests ./hostile.test -test.v -test.timeout 40m -test.run "${VM_HOSTILE:-.}" >/opt/haggle/hostile.log 2>&1
	local code=$?
	echo "named cases that passed: $(grep -c '^ *--- PASS' /opt/haggle/hostile.log), that failed: $(grep -c '^ *--- FAIL' /opt/haggle/hostile.log)"
	# Each case that failed, with what it said.
	awk 'FNR == NR { if ($1 == "---" && $2 == "FAIL:") failed[$3]; next }
		$1 == "---" { next }
		$1 == "===" { name = $3; if ($2 == "RUN" && name in failed) print "failed: " name; next }
		name in failed { print "    " substr($0, 1, 300) }' /opt/haggle/hostile.log /opt/haggle/hostile.log | tail -n 36
	return "$code"
}

if [ "${VM_QUICK:-}" != hostile ]; then
step "systemd rates the network-facing unit below 30" systemd-analyze security --threshold=30 haggled.service
mkdir -p /etc/haggle /var/lib/haggle-vm
step "the lab's image is made" haggle lab image -o /var/lib/haggle-vm/lab.tar
cat >/etc/haggle/haggled.toml <<'TOML'
network = "lab-vm"
name = "vm"
listen = ["/ip4/127.0.0.1/tcp/4701"]
images = [{name = "lab", archive = "/var/lib/haggle-vm/lab.tar"}]
[cards]
simulated = [{profile = "RTX_4090", count = 2}]
[jobs]
network = "internet"
[rules]
min = "10s"
TOML
step "the units start, serve has no capability and is not root" units
step "doctor finds nothing that keeps the rig from serving" haggled doctor
haggled doctor || true
step "a job runs on the units' rig, and another after both were restarted" rented
step "the units stop and leave nothing" sh -c 'systemctl stop haggled.service haggled-helper.service && haggled helper purge --yes && ! nft list tables | grep -q haggle'
[ "${VM_QUICK:-}" = units ] || step "smoke" env SMOKE_LIMIT=900 scripts/smoke.sh
grep -a -h "^ok - " /tmp/step.log | sed 's/^/    /'
fi
[ -n "${VM_QUICK:-}" ] && [ "${VM_QUICK:-}" != hostile ] || step "the hostile suite" hostile
grep -a -h '^named cases' /tmp/step.log | sed 's/^/    /'
if [ "$bad" -eq 0 ]; then echo "vm: all passed"; else echo "vm: $bad failed"; fi
sleep 1
