#!/usr/bin/env bash
# vm.sh: builds a Debian 12 with its cloud kernel, boots it under qemu without KVM, and there, on cgroup v2 and under systemd,
# starts the units, runs smoke and the hostile suite. The result goes to docs/vm-result.txt. Root only; up to an hour.
# VM_QUICK=1 leaves the hostile suite out, VM_QUICK=units smoke too; VM_QUICK=hostile runs that suite alone, VM_HOSTILE=REGEX a part of it. The base image is kept in .vm and made anew when its list of packages changes.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" -eq 0 ] || { echo "vm: run it as root, it makes a file system with other users' files" >&2; exit 1; }
packages=systemd,systemd-sysv,udev,dbus,linux-image-cloud-amd64,initramfs-tools,containerd,runc,nftables,iproute2,e2fsprogs,procps,util-linux,mount,kmod,ca-certificates
limit=${VM_LIMIT:-3600} # seconds for the machine, from its start to its end
cache=.vm
work=$(mktemp -d /tmp/hgvm.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT

say() { printf '\n== vm: %s\n' "$1"; }

base=$cache/base-$(echo "$packages" | sha256sum | cut -c 1-12).tar
if [ ! -s "$base" ]; then
	say "make the base image from Debian's packages"
	mkdir -p "$cache"
	rm -f "$cache"/base-*.tar
	sources=/etc/apt/sources.list.d/debian.sources
	[ -s "$sources" ] || sources=/etc/apt/sources.list
	mmdebstrap --quiet --format=tar --variant=minbase --include="$packages" --aptopt='Acquire::Languages "none"' bookworm "$base.new" "$sources"
	mv "$base.new" "$base"
fi

say "put the programs and the tests in"
root=$work/root
mkdir "$root"
tar -xf "$base" -C "$root" --numeric-owner
make install DESTDIR="$root" PREFIX=/usr
mkdir -p "$root/opt/haggle/scripts" "$root/opt/haggle/bin" "$root/opt/haggle/tests"
cp scripts/*.sh "$root/opt/haggle/scripts/"
cp scripts/vm/check.sh "$root/opt/haggle/"
ln -s /usr/bin/haggle /usr/bin/haggled "$root/opt/haggle/bin/"
go test -vet=off -c -o "$root/opt/haggle/tests/hostile.test" ./internal/hostile
CGO_ENABLED=0 go build -o "$root/opt/haggle/tests/attacker" ./internal/hostile/attacker
CGO_ENABLED=0 go build -o "$root/opt/haggle/tests/probe" ./runtime/runtimetest/probe
install -m 0644 scripts/vm/haggle-check.service "$root/etc/systemd/system/"
ln -s /etc/systemd/system/haggle-check.service "$root/etc/systemd/system/multi-user.target.wants/"
systemd_conf=$root/etc/systemd/system.conf.d
mkdir -p "$systemd_conf" && printf '[Manager]\nDefaultTimeoutStartSec=600\nDefaultDeviceTimeoutSec=600\n' >"$systemd_conf/slow.conf"
ln -sf /dev/null "$root/etc/systemd/system/containerd.service" # Debian's own; the rig starts its own
echo vm >"$root/etc/hostname"
cp "$root"/boot/vmlinuz-* "$work/kernel"
cp "$root"/boot/initrd.img-* "$work/initrd"

say "make the disk and boot it"
truncate -s 24G "$work/disk"
mkfs.ext4 -q -F -d "$root" "$work/disk"
rm -rf --one-file-system "$root"
code=0
timeout "$limit" qemu-system-x86_64 -accel tcg,thread=multi -smp 2 -m 4096 -nographic -no-reboot -nic none \
	-kernel "$work/kernel" -initrd "$work/initrd" -append "root=/dev/vda rw console=ttyS0 panic=5 quiet ${VM_QUICK:+systemd.setenv=VM_QUICK=$VM_QUICK} ${VM_HOSTILE:+systemd.setenv=VM_HOSTILE=$VM_HOSTILE}" \
	-drive "file=$work/disk,format=raw,if=virtio,cache=unsafe" </dev/null 2>&1 |
	stdbuf -oL tr -d '\r' | tee "$work/console" | grep --line-buffered -E '^(==|ok|not ok|---|FAIL|PASS|vm:)|haggle-check' || code=$?

say "read the result"
debugfs -R "cat /opt/haggle/result" "$work/disk" >"$work/result" 2>/dev/null || true
if ! grep -q '^vm: ' "$work/result"; then
	tail -n 60 "$work/console"
	echo "vm: the machine ended without a result (qemu's end: $code, limit $limit s)" >&2
	exit 1
fi
cp "$work/result" docs/vm-result.txt
tail -n 12 docs/vm-result.txt
grep -q '^vm: all passed' docs/vm-result.txt
