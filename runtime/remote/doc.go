// Package remote carries runtime.Runtime over a unix socket, so that the program that talks with the network can be another
// one, of another user, than the program that starts containers as root.
//
// Serve the engine with a Server in the helper, which is root; reach it with a Client in the daemon, which is nobody special.
// A Client keeps the same promises as the engine behind it: package runtimetest holds both to one suite. When the helper is
// away its calls are runtime.ErrUnavailable and its watchers are closed; when it is back the Client finds it by itself.
//
// # What crosses
//
// Data and streams only: job specs, ids, image archives, logs, figures, and the bytes of paths into jobs, which the helper copies
// and does not read. No request names a path of the machine, an OCI spec, a mount, a device node, a program to run outside a
// job, or a user. HTTP/1.1 and JSON below /v1, in the forms of wire.go; a field that the other side does not know is refused. A
// path into a job is a connection that HTTP has given up (POST /v1/jobs/{id}/enter, answered by 101): from then on it carries
// raw bytes, and the end of each direction by itself. Errors cross as codes and are the same to errors.Is on both sides. A call
// whose caller gives up ends on the helper's side too, except for an order to stop a job: once it has arrived it is carried out.
//
// # What a daemon that was taken over can do here
//
// It holds this socket. With it a stranger can start jobs from images that he sends, in the same isolation as every tenant; enter
// every job with the rights of its tenant, which means to read and change its files, the environment of its processes and its
// secrets, to run programs in it and to reach its ports, while it runs and for as long as its disk is kept, and to give that
// disk to a job of his own; read the logs and figures of all; end and remove every job, also those of honest renters; fill the
// part of the disk that images and jobs may have, up to the bounds of Limits; lower and raise the power limit of cards within
// what the cards allow.
//
// He cannot read or write a file of the machine outside a job, choose a path, a mount, a device or a program on the machine,
// loosen the isolation of a job, reach the sockets of containerd or the files of the engine, take more jobs, images, streams,
// paths or memory of the helper than Limits says, or become another user. The rig's key and its database are the daemon's own,
// and are lost to him.
//
// The socket lies in a folder of the helper, who asks the kernel for the user at the other end of each connection: root and one
// other user are let in. The Client asks the same of the helper, so that nobody can stand in for it.
package remote
