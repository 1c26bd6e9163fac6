#!/usr/bin/env bash
# setup.sh: installs what building, testing and a lab need and this machine lacks, from Debian's or Ubuntu's packages. It does
# nothing where all is there, and asks for sudo once where it is not run by root. `setup.sh test` looks for what the tests need instead:
# the programs that people enter a job with; `setup.sh clients` for what `make clients` does, `setup.sh shots` for what drawing the
# screens does, `setup.sh vm` for what a virtual machine does.
set -euo pipefail

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# program package
needs='
containerd containerd
containerd-shim-runc-v2 containerd
runc runc
nft nftables
ip iproute2
mkfs.ext4 e2fsprogs
lsns util-linux
losetup mount
ps procps
systemd-analyze systemd
setpriv util-linux
tmux tmux
git git
gcc gcc
make make
'

if [ "${1:-}" = test ] || [ "${1:-}" = clients ]; then
	needs='
ssh openssh-client
scp openssh-client
sftp openssh-client
rsync rsync
rclone rclone
sshfs sshfs
fusermount3 fuse3
curl curl
script bsdutils
openssl openssl
/usr/bin/python3 python3
'
fi

if [ "${1:-}" = clients ]; then
	needs+='
mmdebstrap mmdebstrap
'
fi

if [ "${1:-}" = shots ]; then
	needs='
rsvg-convert librsvg2-bin
tmux tmux
'
fi

if [ "${1:-}" = vm ]; then
	needs='
mmdebstrap mmdebstrap
qemu-system-x86_64 qemu-system-x86
debugfs e2fsprogs
'
fi

missing=()
while read -r program package; do
	if [ -n "$program" ] && ! command -v "$program" >/dev/null; then
		missing+=("$package")
	fi
done <<<"$needs"
if [ "${1:-}" = test ] || [ "${1:-}" = clients ]; then
	/usr/bin/python3 -c 'import paramiko' 2>/dev/null || missing+=(python3-paramiko)
fi
# gcc alone cannot compile: the C library's headers are a package of their own.
if [ ! -e /usr/include/stdlib.h ]; then
	missing+=(libc6-dev)
fi

if [ "${1:-}" = shots ]; then
	for font in fonts-dejavu-core:DejaVuSansMono fonts-wqy-microhei:wqy-microhei; do # Latin and box lines; CJK
		if [ -z "$(find /usr/share/fonts -name "${font#*:}*" -print -quit 2>/dev/null)" ]; then
			missing+=("${font%:*}")
		fi
	done
fi

if ! command -v go >/dev/null; then
	echo "setup: Go is missing: install Go 1.26 or newer and put it on the PATH" >&2
	exit 1
fi
go=$(cd / && GOTOOLCHAIN=local go env GOVERSION)
if [ "$(printf 'go1.26\n%s\n' "$go" | sort -V | head -n 1)" != go1.26 ]; then
	echo "setup: this is $go: install Go 1.26 or newer and put it first on the PATH" >&2
	exit 1
fi
if [ "${1:-}" = test ]; then
	"$(dirname "$0")/kubo.sh" # the public DHT of the tests
fi

if [ ${#missing[@]} -eq 0 ]; then
	exit 0
fi
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
if ! command -v apt-get >/dev/null; then
	echo "setup: missing: ${missing[*]}; install them with this system's package manager (the names are Debian's)" >&2
	exit 1
fi
echo "setup: installing ${missing[*]}"
install='apt-get update -q && apt-get install -y -q --no-install-recommends "$@"'
if [ "$(id -u)" -eq 0 ]; then
	DEBIAN_FRONTEND=noninteractive bash -euc "$install" setup "${missing[@]}" </dev/null
elif command -v sudo >/dev/null; then
	sudo env DEBIAN_FRONTEND=noninteractive bash -euc "$install" setup "${missing[@]}"
else
	echo "setup: not root and no sudo: as root, run: apt-get install ${missing[*]}" >&2
	exit 1
fi
