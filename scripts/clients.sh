#!/usr/bin/env bash
# clients.sh: enters jobs of real labs with programs that people have already: OpenSSH, rsync, rclone, sshfs, paramiko, a notebook.
# The images are made of Debian's packages once and kept in .images. Root only; about five minutes, and seven more for the images.
# clients.sh NAME runs the tests of that name only.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" -eq 0 ] || { echo "clients: run it as root, a lab needs it" >&2; exit 1; }
CI=true E2E_PROGRAMS=${E2E_PROGRAMS:-$PWD/bin} go test -tags clients -vet=off -count=1 -v -timeout 45m -run "${1:-.}" ./internal/clients
