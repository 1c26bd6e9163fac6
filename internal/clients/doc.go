// Package clients has tests only: programs that people have already, at work on jobs in a lab of real programs. OpenSSH, rsync,
// rclone, sshfs and paramiko come and go through the SSH server inside a job, a notebook computes behind a forwarded port, and a
// training moves from one rig to another. The jobs' images are made of Debian's packages.
//
// `make clients` runs them, with the build tag clients, for they take minutes. They need root, containerd, mmdebstrap and those programs.
package clients
