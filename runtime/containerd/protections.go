//go:build linux

package containerd

import (
	"slices"

	"haggle/runtime/volume"
)

// Names of the protections, for Config.Without and in reports.
const (
	UserNamespace   = "user-namespace"
	Seccomp         = "seccomp"
	Capabilities    = "capabilities"
	NoNewPrivileges = "no-new-privileges"
	MaskedPaths     = "masked-paths"
	DeviceCgroup    = "device-cgroup"
	Pids            = "pids"
	Memory          = "memory"
	CPU             = "cpu"
	OpenFiles       = "open-files"
	Shm             = "shm"
	LogLimit        = "log-limit"
	ImageBounds     = "image-bounds"
	OneCardOneLease = "one-card-one-lease"
	HookEnvironment = "hook-environment"
)

// Protections lists the names that Config.Without knows: the engine's own, and those of the disks that it keeps.
func Protections() []string {
	return append([]string{
		UserNamespace, Seccomp, Capabilities, NoNewPrivileges, MaskedPaths, DeviceCgroup, Pids, Memory, CPU, OpenFiles, Shm,
		LogLimit, ImageBounds, OneCardOneLease, HookEnvironment,
	}, volume.Protections()...)
}

// has reports whether a protection is on.
func (c Config) has(protection string) bool { return !slices.Contains(c.Without, protection) }

func volumeWithout(without []string) []string {
	return slices.DeleteFunc(slices.Clone(without), func(name string) bool {
		return !slices.Contains(volume.Protections(), name)
	})
}
