#!/usr/bin/env bash
# verify-receipt.sh FILE [KIND]: checks the signatures of a file of evidence (`haggle export`), or of one sealed record, with openssl
# alone: nothing of haggle runs. It prints a line for each signature: the record's kind and hash, the role, the key, ok or BAD; KIND
# (receipt, lease, payment, …) keeps to records of that kind. It ends with 1 where a signature is bad or none was found. What the
# records say is not looked at: docs/protocol.md, "A receipt by openssl alone", tells what to compare by hand.
set -euo pipefail
export LC_ALL=C

file=${1:?usage: verify-receipt.sh FILE [KIND]}
only=${2:-}
hex=$(od -An -v -tx1 "$file" | tr -d ' \n')
size=$((${#hex} / 2))
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# head: reads the first bytes of the CBOR item at $at into major and arg, and steps over them.
head() {
	local first=$((16#${hex:at*2:2})) width
	major=$((first >> 5)) arg=$((first & 31)) at=$((at + 1))
	if ((arg >= 24 && major != 7)); then
		width=$((1 << (arg - 24)))
		arg=$((16#${hex:at*2:width*2})) at=$((at + width))
	fi
}

# text: reads the string item at $at; its bytes are those of the file from $from on, $arg of them.
text() {
	head
	from=$at at=$((at + arg))
}

# skip: steps over one item.
skip() {
	local count
	head
	case $major in
	2 | 3) at=$((at + arg)) ;;
	4 | 5)
		for ((count = arg * (major - 3); count > 0; count--)); do skip; done
		;;
	esac
}

# bytes FROM COUNT: those of the file. unhex: hexadecimal digits as bytes.
bytes() { tail -c +$(($1 + 1)) "$file" | command head -c "$2" || true; } # the pipe may close early
unhex() { printf '%b' "$(sed 's/../\\x&/g' <<<"$1")"; }

signatures=0 bad=0

# record: checks the sealed record at $at: {1 network, 2 kind, 3 version, 4 body, 5 [{1 role, 2 key, 3 signature}]}.
record() {
	local network kind version hash role key count said
	head # the map of five
	skip && text && network=$(bytes $from $arg)
	skip && text && kind=$(bytes $from $arg)
	skip && head && version=$arg
	skip && text && bytes $from $arg >"$work/body"
	hash=$(openssl dgst -sha256 -r "$work/body" | cut -d' ' -f1)
	skip && head
	for ((count = arg; count > 0; count--)); do
		head # the map of three
		skip && text && role=$(bytes $from $arg)
		skip && text && key=${hex:from*2:arg*2}
		skip && text && bytes $from $arg >"$work/sig"
		if [ -n "$only" ] && [ "$only" != "$kind" ]; then
			continue
		fi
		# The signed bytes: a domain, a zero byte, and the hash of the body.
		{ printf 'haggle/%s/%s/%s/%s\0' "$network" "$kind" "$version" "$role" && unhex "$hash"; } >"$work/message"
		# An ed25519 public key as openssl reads it: a fixed head (RFC 8410) and the 32 bytes.
		unhex "302a300506032b6570032100$key" >"$work/key.der"
		said=ok
		openssl pkeyutl -verify -pubin -keyform DER -inkey "$work/key.der" -rawin -in "$work/message" -sigfile "$work/sig" >"$work/said" 2>&1 ||
			said=BAD bad=$((bad + 1))
		signatures=$((signatures + 1))
		echo "$kind $hash $role $key $said"
	done
}

at=0
if [[ $hex != a?016f686167676c652d65766964656e6365* ]]; then # no "haggle-evidence" at its head: one sealed record
	record
else
	skip # the header of a file of evidence; then one byte string for each record
	while ((at < size)); do
		text
		next=$at at=$from
		if ((arg > 0)); then # what is left out is empty
			record
		fi
		at=$next
	done
fi
((signatures > 0 && bad == 0))
