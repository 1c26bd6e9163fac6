//go:build linux

package device

import (
	"path"
	"slices"
	"strings"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	cdispecs "tags.cncf.io/container-device-interface/specs-go"
)

// hookWant is a hook that may run, in mode WithHooks.
type hookWant struct {
	program string
	args    []string
	env     []string // the description's, for tests without ProtectHookEnv
}

// hookEnv is all the environment that a hook gets. Not nil, because runc before 1.2 gives a hook without one the job's.
func hookEnv() []string {
	return []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
}

// hookSeconds is how long a hook may take before the job fails to start.
const hookSeconds = 30

// hook judges one hook. One that passes has its arguments written anew from what was understood of them.
func (j *judge) hook(h *cdispecs.Hook, out *edits) {
	if j.off[ProtectHooks] {
		out.hooks = append(out.hooks, hookWant{h.Path, h.Args, h.Env})
		return
	}
	if !slices.Contains(j.programs, h.Path) {
		j.no(ruleProgram, "%.100q is not among the programs that may run as hooks", h.Path)
		return
	}
	base := path.Base(h.Path)
	fixed := []string{base}
	if base == "nvidia-ctk" {
		fixed = append(fixed, "hook")
	}
	if len(h.Args) <= len(fixed) || !slices.Equal(h.Args[:len(fixed)], fixed) {
		j.no(ruleArgs, "the arguments of %s do not start as expected", h.Path)
		return
	}
	command, rest := h.Args[len(fixed)], h.Args[len(fixed)+1:]
	switch command {
	case "chmod", "enable-cuda-compat", "update-application-profile", "apply-cuda-memory-limits":
		// They read or change the job's own files as root, for a comfort. Jobs do without.
		out.leftOut = append(out.leftOut, "hook "+command)
		return
	}
	if h.HookName != cdi.CreateContainerHook {
		j.no(ruleStage, "hook %.40q would run at %.40q and not at %s", command, h.HookName, cdi.CreateContainerHook)
		return
	}
	before := len(j.problems)
	var args []string
	switch command {
	case "create-symlinks":
		args = j.links(rest, out)
	case "update-ldcache":
		args = j.folders(rest)
	case "disable-device-node-modification":
		if len(rest) > 0 {
			j.no(ruleArgs, "%s takes no arguments", command)
		}
	default:
		j.no(ruleCommand, "sub-command %.40q is not among those that may run", command)
	}
	if len(j.problems) > before || args == nil && command != "disable-device-node-modification" {
		return
	}
	out.hooks = append(out.hooks, hookWant{h.Path, slices.Concat(fixed, []string{command}, args), h.Env})
}

// links reads the arguments of create-symlinks and returns them anew; nil when no link is left.
func (j *judge) links(args []string, out *edits) []string {
	var anew []string
	for name, value := range j.flags(args) {
		target, at, ok := strings.Cut(value, "::")
		if name != "--link" || !ok {
			j.no(ruleArgs, "%.100q is no link", name+" "+value)
			return nil
		}
		if strings.HasPrefix(at, "/dev/dri/by-path/") && cleanPath(at) {
			out.leftOut = append(out.leftOut, "link "+at)
			continue
		}
		end := target
		if !path.IsAbs(end) {
			end = path.Join(path.Dir(at), end)
		}
		if !cleanPath(at) || !j.mayCover(at) {
			j.no(ruleArgs, "a link at %.100q is in no place of libraries inside the job", at)
			return nil
		}
		if target == "" || !cleanPath(end) || !j.mayCover(end) {
			j.no(ruleArgs, "a link to %.100q leads out of the places of libraries", target)
			return nil
		}
		out.links = append(out.links, link{target, at})
		anew = append(anew, "--link", target+"::"+at)
	}
	return anew
}

// folders reads the arguments of update-ldcache and returns them anew.
func (j *judge) folders(args []string) []string {
	var anew []string
	for name, value := range j.flags(args) {
		switch name {
		case "--folder":
			if value != "/usr/lib" && value != "/lib" && (!cleanPath(value) || !j.mayCover(value)) {
				j.no(ruleArgs, "folder %.100q is no place of libraries inside the job", value)
				return nil
			}
		case "--ldconfig-path":
			if !slices.Contains([]string{"/sbin/ldconfig", "/sbin/ldconfig.real", "/usr/sbin/ldconfig", "/usr/sbin/ldconfig.real"}, value) {
				j.no(ruleArgs, "%.100q would run as ldconfig", value)
				return nil
			}
		default:
			j.no(ruleArgs, "%.100q is no argument of update-ldcache", name)
			return nil
		}
		anew = append(anew, name, value)
	}
	return anew
}

// flags goes through arguments of the forms "--name value" and "--name=value".
func (j *judge) flags(args []string) func(yield func(name, value string) bool) {
	return func(yield func(name, value string) bool) {
		for len(args) > 0 {
			name, value, both := strings.Cut(args[0], "=")
			args = args[1:]
			if !both {
				if len(args) == 0 {
					j.no(ruleArgs, "%.100q has no value", name)
					return
				}
				value, args = args[0], args[1:]
			}
			if !yield(name, value) {
				return
			}
		}
	}
}
