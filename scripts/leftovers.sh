#!/usr/bin/env bash
# leftovers.sh FOLDER: writes what a lab could leave on this machine into FOLDER, a sorted file a kind: processes, mounts,
# namespaces, loop devices, links, cgroups, sockets, tables of nft, files of containers. Two such folders are for diff. Root only.
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C # one order of sorting
to=${1:?a folder}
mkdir -p "$to"

# Processes that are ours by their command line or by their cgroup. Zombies are somebody else's to reap.
all=$(ps -eo pid=,ppid=,stat=,args=)
grouped=$({ grep -l -E 'haggle|containerd|runc' /proc/[0-9]*/cgroup 2>/dev/null || true; } | tr -d -c '0-9\n' | tr '\n' ' ')
awk -v self=$$ -v grouped=" $grouped" '
	$1 == self || $2 == self || $3 ~ /^Z/ { next }
	/haggle|containerd|runc|\/tmp\/hg/ || index(grouped, " " $1 " ") { $3 = ""; print }' <<<"$all" | sort >"$to/processes"

awk '{ print $5, $(NF - 2), $(NF - 1) }' /proc/self/mountinfo | sort >"$to/mounts"
{
	lsns -n -t net -o NS
	ip netns list
} | sort -u >"$to/network-namespaces"
losetup -n -l -O NAME,BACK-FILE | sort >"$to/loop-devices"
ip -o link show | awk '{ print $2 }' | sort >"$to/links"
find /sys/fs/cgroup -type d | { grep -v -E '/(user|session|init)[^/]*\.(slice|scope)' || true; } | sort >"$to/cgroups"
{ ls -A /run/containerd/s 2>/dev/null || true; } | sort >"$to/shim-sockets"
awk '$8 ~ /haggle|containerd|runc|\/tmp\/hg/ { print $8 }' /proc/net/unix | sort >"$to/unix-sockets"
nft list tables 2>/dev/null | sort >"$to/nft-tables"
find /run /var/run/ -xdev \( -path '*containerd*' -o -path '*runc*' -o -path '*haggle*' \) ! -type d 2>/dev/null |
	sort >"$to/runtime-files"
find /tmp -maxdepth 1 \( -name 'hg*' -o -name '*haggle*' \) | sort >"$to/temporary-files"

# Containers of a containerd that was here before; the lab's own are gone with their folders, tasks and shims.
system=/run/containerd/containerd.sock
: >"$to/containers"
if [ -S "$system" ] && command -v ctr >/dev/null; then
	for namespace in $(timeout 10 ctr --address "$system" namespaces list -q || true); do
		timeout 10 ctr --address "$system" --namespace "$namespace" containers list -q | sed "s|^|$namespace |"
	done | sort >"$to/containers"
fi
