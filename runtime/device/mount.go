//go:build linux

package device

import (
	"path"
	"slices"
	"strings"

	cdispecs "tags.cncf.io/container-device-interface/specs-go"
)

// mountWant is one file or folder that a description shows to a job.
type mountWant struct {
	source, target string
	options        []string // for the job
}

// link is a symbolic link that a job should find.
type link struct{ target, path string }

// places are where systems and vendors keep libraries, programs, firmware and what loaders read about them. Everybody on the
// machine can read them.
func places() []string {
	return []string{"/lib", "/lib32", "/lib64", "/usr", "/opt"}
}

// loaderFiles are the files below /etc by which loaders find a driver.
func loaderFiles() []string {
	return []string{
		"/etc/OpenCL/vendors/*.icd", "/etc/vulkan/icd.d/*.json", "/etc/vulkan/implicit_layer.d/*.json",
		"/etc/egl/egl_external_platform.d/*.json", "/etc/glvnd/egl_vendor.d/*.json",
	}
}

// folderPlaces are where a whole folder may be shown; elsewhere it would hide, or show, more than a driver.
func folderPlaces() []string {
	return []string{"/opt", "/usr/local", "/lib/firmware", "/usr/lib/firmware"}
}

func below(p string, places []string) bool {
	return slices.ContainsFunc(places, func(place string) bool { return strings.HasPrefix(p, place+"/") })
}

func matchesAny(p string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, _ := path.Match(pattern, p)
		return ok
	})
}

// mayShow reports whether a path of the machine may be shown to jobs, as far as the path alone tells.
func (p policy) mayShow(source string) bool {
	return below(source, places()) || below(source, p.sources) || matchesAny(source, loaderFiles())
}

// mayShowFolder reports the same of a folder.
func (p policy) mayShowFolder(source string) bool {
	return below(source, folderPlaces()) || below(source, p.sources)
}

// mayCover reports whether something may be mounted at a path inside a job.
func (p policy) mayCover(target string) bool {
	return p.mayShow(target) && !inside(target, "/usr/local/haggle")
}

// inside reports whether p is dir or below it.
func inside(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, dir+"/")
}

// unneeded reports whether a mount is known from a vendor's tools and of no use to a job. Sockets lead to daemons of root's;
// nodes of screens and links to them are for desktops.
func unneeded(m *cdispecs.Mount) bool {
	source := m.HostPath
	if rest, ok := strings.CutPrefix(source, "/var/run/"); ok {
		source = "/run/" + rest
	}
	switch source {
	case "/run/nvidia-persistenced/socket", "/run/nvidia-fabricmanager/socket", "/tmp/nvidia-mps":
		return true
	case "/dev/null":
		return strings.HasPrefix(m.ContainerPath, "/var/run/nvidia-container-devices/")
	}
	return inside(source, "/dev/dri/by-path") && cleanPath(source)
}

// mount judges one mount. What passes is read-only, whether the description said so or not.
func (j *judge) mount(m *cdispecs.Mount, out *edits) {
	if j.off[ProtectMounts] {
		options := m.Options
		if len(options) == 0 {
			options = []string{"rbind", "rw"}
		}
		out.mounts = append(out.mounts, mountWant{m.HostPath, m.ContainerPath, options})
		return
	}
	if unneeded(m) {
		out.leftOut = append(out.leftOut, "mount "+m.HostPath)
		return
	}
	before := len(j.problems)
	if !cleanPath(m.HostPath) || !j.mayShow(m.HostPath) {
		j.no(ruleSource, "%.100q is in no place of libraries", m.HostPath)
	}
	if !cleanPath(m.ContainerPath) || !j.mayCover(m.ContainerPath) {
		j.no(ruleTarget, "%.100q is in no place of libraries inside the job", m.ContainerPath)
	}
	if m.Type != "" && m.Type != "bind" && m.Type != "none" {
		j.no(ruleMountType, "%.100q would be a mount of type %.20q", m.ContainerPath, m.Type)
	}
	options := []string{"bind", "ro", "nosuid", "nodev", "rprivate"}
	for _, o := range m.Options {
		switch o {
		case "bind", "rbind", "ro", "nosuid", "nodev", "private", "rprivate", "slave", "rslave":
			// Said or not, the mount gets the options above: one file, private to the job.
		case "noexec":
			options = append(options, o)
		default:
			j.no(ruleOptions, "option %.40q of %.100q is not given", o, m.ContainerPath)
			return
		}
	}
	if len(j.problems) == before {
		out.mounts = append(out.mounts, mountWant{m.HostPath, m.ContainerPath, slices.Compact(options)})
	}
}
