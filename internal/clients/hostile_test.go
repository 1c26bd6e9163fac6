//go:build linux && clients

package clients_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTheWayInsideIsNoWayOut has a job that is against its renter and its rig, and a renter who is against the rig.
func TestTheWayInsideIsNoWayOut(t *testing.T) {
	l := newLab(t, 1)
	l.rent("box", "--offer", "rig-1", "--image", tools().archive(t), "--for", "1h", "--disk", "1GB", "--", "sleep", "infinity")
	l.sshConfig()
	for _, c := range []struct {
		name string
		run  func(*host)
	}{
		{"links that a job plants lead no copy out of its folder", (*host).linksOut},
		{"links at the target of a copy are no way to elsewhere", (*host).linksIn},
		{"names that a job makes up do nothing to a terminal", (*host).names},
		{"a full disk in the job is said, and so is one here", (*host).fullDisks},
		{"streams that nobody reads take no memory", (*host).endless},
		{"no forward leads to the rig", (*host).noRig},
		{"a job that plays with its own door harms nobody", (*host).ownDoor},
		{"two thousand tunnels leave a rig at work", (*host).tunnels},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(&host{l.in(t)}) })
	}
}

// linksOut has the job plant a link to a folder of the renter's machine, and later a folder where the link was.
func (h *host) linksOut() {
	victim := filepath.Join(h.work, "victim")
	h.write("victim/keep", "mine")
	h.says("", fmt.Sprintf("rm -rf out; mkdir -p out/a; ln -s %s out/sub; ln -s ../../../../../../../..%s out/a/up; ln -s /etc/shadow out/shadow; mkfifo out/pipe; echo evil >out/a/file",
		victim, victim))
	for _, home := range []string{"home1", "home2"} {
		copies := [][]string{{"sync", "box:out", home}, {"cp", "box:out/", home}}
		if home == "home2" {
			copies[0], copies[1] = copies[1], copies[0]
		}
		h.command("haggle", copies[0]...).Run() //nolint:errcheck // it may refuse the links or take them as they are
		h.says("", "rm out/sub out/a/up; mkdir out/sub out/a/up; echo evil >out/sub/keep; echo evil >out/a/up/new")
		h.command("haggle", copies[1]...).Run() //nolint:errcheck // as before
		left, err := os.ReadDir(victim)
		if err != nil || len(left) != 1 || h.read("victim/keep") != "mine" {
			h.t.Fatalf("a job has written to a folder of its renter: %v, %v, %q", left, err, h.read("victim/keep"))
		}
		if got := h.read(home + "/sub/keep"); got != "evil\n" {
			h.t.Errorf("the folder that took a link's place came as %q", got)
		}
		h.says("", fmt.Sprintf("rm -r out/sub out/a/up; ln -s %s out/sub; ln -s ../../../../../../../..%s out/a/up", victim, victim))
	}
}

// linksIn copies to where the job has put links, by each way in.
func (h *host) linksIn() {
	h.write("tree/sub/file-of-a-copy", "text")
	h.says("", "rm -rf in; mkdir -p in in2; ln -s /proc/1/root/etc in/sub; ln -s /etc in2/sub")
	h.command("haggle", "sync", "tree", "box:in").Run()                          //nolint:errcheck // it may refuse
	h.command("haggle", "cp", "tree/", "box:in2").Run()                          //nolint:errcheck // it may refuse
	h.ssh("scp", "-r", "tree/sub/file-of-a-copy", "box:in/sub/").Run()           //nolint:errcheck // that is the job's own /etc
	h.ssh("scp", "tree/sub/file-of-a-copy", "box:/proc/1/root/../../etc/").Run() //nolint:errcheck // and this
	if _, err := os.Lstat("/etc/file-of-a-copy"); err == nil {
		h.t.Error("a copy into a job has come to the rig's /etc")
	}
	mine, err := os.ReadFile("/etc/machine-id")
	theirs, _ := h.ssh("ssh", "box", "cat /proc/1/root/etc/machine-id /proc/self/root/../etc/machine-id").Output()
	if err == nil && len(mine) > 0 && strings.Contains(string(theirs), strings.TrimSpace(string(mine))) {
		h.t.Error("a job reads the rig's files")
	}
}

func (h *host) names() {
	h.says("", `rm -rf names; mkdir names; cd names; python3 -c 'for n in ("\x1b]0;evil\x07", "a\nb", "\x1b[2J", "..."): open(n, "w").write("x")'`)
	h.says("", `python3 -c 'import os; os.chdir("names"); [(os.mkdir("d" * 50), os.chdir("d" * 50)) for i in range(500)]'`)
	for _, args := range [][]string{{"cp", "box:names", "names"}, {"sync", "box:names", "names2"}, {"cp", "box:names/\x1b[2Jno", "x"}} {
		out, _ := h.command("haggle", args...).CombinedOutput() // it may refuse such names
		if strings.ContainsAny(string(out), "\x1b\a") {
			h.t.Errorf("haggle %q writes %q", args, out)
		}
	}
}

func (h *host) fullDisks() {
	t := h.t
	big := filepath.Join(h.work, "big")
	h.run("truncate", "-s", "3G", big)
	cmd := h.command("haggle", "cp", big, "box:big")
	out, _ := cmd.CombinedOutput() // the exit code is looked at
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), "no room") {
		t.Errorf("a copy that the job's disk has no room for ends with %d: %s", code, out)
	}
	h.says("", "find . -name '*.haggle-part' -delete; head -c 60000000 /dev/urandom >much")
	at := filepath.Join(h.work, "small")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", at, "tmpfs", 0, "size=16m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(at, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	cmd = h.command("haggle", "cp", "box:much", at+"/")
	out, _ = cmd.CombinedOutput() // the exit code is looked at
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), "no room") {
		t.Errorf("a copy that this machine's disk has no room for ends with %d: %s", code, out)
	}
	if left, _ := filepath.Glob(at + "/much"); left != nil {
		t.Error("a part of a file has the whole one's name")
	}
	// Sparse, it is larger than all disks of this machine.
	h.says("", "rm much; truncate -s 900G sparse")
	before := diskUsed(t, h.work)
	h.wants(h.command("haggle", "cp", "box:sparse", "sparse"), 1)
	if n := diskUsed(t, h.work) - before; n > 1<<20 {
		t.Errorf("a file that is too large has left %d kB here", n>>10)
	}
	h.says("", "rm sparse")
}

// diskUsed returns what the files below a folder take on the disk they are on.
func diskUsed(t *testing.T, dir string) int64 {
	t.Helper()
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			sum += stat.Blocks * 512
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
