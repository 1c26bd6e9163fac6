package door

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Bounds of what is read from files that the tenant may have written.
const (
	maxEnviron = 1 << 20
	maxPasswd  = 1 << 20
)

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// work is the folder that the tenant calls /work.
func (d *Door) work() string {
	if d.cfg.Root != "" {
		return d.cfg.Root
	}
	return "/work"
}

// place is where a path that the renter names is. In a lab without containers /work is a folder of the host.
func (d *Door) place(path string) string {
	if path == "" {
		return d.work()
	}
	path = filepath.Clean(path)
	if !filepath.IsAbs(path) && !strings.HasPrefix(path, "/") {
		return filepath.Join(d.work(), path)
	}
	if d.cfg.Root == "" {
		return path
	}
	if rest, ok := strings.CutPrefix(filepath.ToSlash(path), "/work"); ok && (rest == "" || rest[0] == '/') {
		return filepath.Join(d.cfg.Root, filepath.FromSlash(rest))
	}
	return path
}

// cwd is where sessions begin.
func (d *Door) cwd(env environ) string {
	for _, dir := range []string{d.work(), env.get("HOME")} {
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
			return dir
		}
	}
	return string(filepath.Separator)
}

// environ is a list of NAME=VALUE in which each name is once.
type environ []string

func (e environ) get(name string) string {
	for _, kv := range e {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

func (e *environ) set(name, value string) {
	for i, kv := range *e {
		if strings.HasPrefix(kv, name+"=") {
			(*e)[i] = name + "=" + value
			return
		}
	}
	*e = append(*e, name+"="+value)
}

func (e *environ) setDefault(name, value string) {
	if value != "" && e.get(name) == "" {
		e.set(name, value)
	}
}

// environment is that of a new session: the job's, and what a session has besides. It is read anew each time, for the first
// process of a job that waits for its start is not the job's yet.
func (d *Door) environment() environ {
	env := environ(os.Environ())
	if d.cfg.Root == "" {
		for _, kv := range bytes.Split(readBounded("/proc/1/environ", maxEnviron), []byte{0}) {
			if name, value, ok := bytes.Cut(kv, []byte{'='}); ok && len(name) > 0 {
				env.set(string(name), string(value))
			}
		}
	}
	env.setDefault("PATH", defaultPath)
	me := user(os.Getuid())
	env.setDefault("HOME", me.home)
	env.setDefault("HOME", d.work())
	env.setDefault("USER", me.name)
	env.setDefault("LOGNAME", env.get("USER"))
	env.set("SSH_CONNECTION", "127.0.0.1 1 127.0.0.1 22")
	return env
}

// shells are what a session can start, the best first, each as a program and its arguments. The built-in one is always the last.
func (d *Door) shells(env environ) [][]string {
	var found [][]string
	for _, path := range []string{
		env.get("SHELL"), user(os.Getuid()).shell,
		"/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh", "/bin/ash",
	} {
		if usable(path) {
			found = append(found, []string{path})
		}
	}
	for _, path := range []string{"/bin/busybox", "/usr/bin/busybox"} {
		if usable(path) {
			found = append(found, []string{path, "sh"})
		}
	}
	return append(found, d.cfg.Shell)
}

// usable says whether path is a program that is meant for people.
func usable(path string) bool {
	if !filepath.IsAbs(path) {
		return false
	}
	switch filepath.Base(path) {
	case "nologin", "false", "true", "sync":
		return false
	}
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0
}

// has says whether a program is in the job's PATH.
func has(env environ, program string) bool {
	for _, dir := range filepath.SplitList(env.get("PATH")) {
		if filepath.IsAbs(dir) && usable(filepath.Join(dir, program)) {
			return true
		}
	}
	return false
}

// person is a line of /etc/passwd.
type person struct{ name, home, shell string }

// user finds who has uid in the job's image; where nobody has, root is called root.
func user(uid int) person {
	for line := range strings.Lines(string(readBounded("/etc/passwd", maxPasswd))) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) == 7 && f[2] == strconv.Itoa(uid) {
			return person{f[0], f[5], f[6]}
		}
	}
	if uid == 0 {
		return person{name: "root"}
	}
	return person{}
}

// readBounded gives the first bytes of a file, and none of one that cannot be read.
func readBounded(path string, limit int64) []byte {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a tenant may have put a fifo there
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil
	}
	return b
}

// ownShell is the built-in shell in this program. The link in /proc leads to the file that runs, also when the path has a new
// one since.
func ownShell() []string {
	self := "/proc/self/exe"
	if _, err := os.Stat(self); err != nil {
		if path, err := os.Executable(); err == nil {
			self = path
		} else if path, err := exec.LookPath(os.Args[0]); err == nil {
			self = path
		}
	}
	return []string{self, "inside", "door", "shell"}
}
