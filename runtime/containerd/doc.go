// Package containerd runs jobs in containerd and runc. The engine looks after a containerd of its own, or uses
// one that it is given; either way jobs, their exit codes and their logs survive the death of this program and
// of containerd.
//
// What is known of a job stands in labels of its container, so that nothing beside containerd has to be kept in
// step. Versions 1.6 and later of containerd, and cgroup v1 and v2, are supported.
package containerd
