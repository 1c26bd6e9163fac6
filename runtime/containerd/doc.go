// Package containerd runs jobs in containerd and runc. The engine looks after a containerd of its own, or uses
// one that it is given; either way jobs, their exit codes and their logs survive the death of this program and
// of containerd.
//
// What is known of a job stands in labels of its container, so that nothing beside containerd has to be kept in
// step. Versions 1.6 and later of containerd, and cgroup v1 and v2, are supported.
//
// A job is a stranger. It has a user namespace with a range of ids that no other job has, a root file system of the image's
// layers below a disk of its own (runtime/volume), five capabilities, a filter of system calls, and no view of what tells of
// the machine. It is bounded in memory, processes, processor time, disk, log and open files, weighs little beside the
// household's programs, and is the first to go when the machine's memory ends. It reaches the network that runtime/jobnet
// gives it, or none, and the devices that runtime/device lets through, each of which one job has at a time. Check tries all
// of that out.
//
// With Config.Spares the engine keeps containers ready, with all of that on, whose first process is ours and waits; a job like
// the last one becomes the content of such a container in a few milliseconds. Inside, nothing differs from a container that was
// made for the job, but that it is older. Jobs with devices that exist, or with very little memory, are always made from nothing.
//
// With Config.DoorProgram a job can be entered: a program of ours, the door, runs inside it with its rights and limits, and the
// engine connects with it over a socket in the job's network namespace. It is started when somebody enters for the first time,
// outlives this program, and counts to the job's limits; what runc needs to start it, some 10 MB, does so too. What a stopped job
// has kept is entered by a container of its own, a visit, which nothing else shows and which goes by itself. A job may take over
// the disk of a stopped one; a disk on its way between two jobs belongs to one of them at any time, whoever dies.
//
// Linux 5.19 or later is needed, for overlays of layers whose owners are shifted. The folders that a Config names must be in
// the mount namespace of containerd and stay there: a service manager that gives this program mounts of its own would part
// it from jobs that outlive it.
package containerd
