// Package door is the program of ours that runs inside a job. Whoever rents the job reaches its shell, its ports, its files and
// its checkpoints through it, so that everything that touches a tenant's paths and processes happens with the job's own
// rights, limits and view.
//
// It speaks package tunnel on a unix socket. Its kinds of channels are ssh (a whole SSH server: shells, commands, sftp,
// forwards both ways), dial, files, ping, and those of checkpoints. The renter is not asked who he is: a path that arrives here
// was let in by the lease's key, and ends in the renter's own job. A process of the job may open a path as well, and gains
// nothing by it.
//
// It needs nothing of the image: where there is no shell, it has a small one.
package door
