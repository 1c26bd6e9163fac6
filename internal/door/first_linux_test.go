package door_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// In a visit to a disk the door is the first process, and a small limit of processes must not fill up with dead ones.
func TestAsTheFirstProcessTheDoorBuriesOrphans(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		missing(t, "root")
	}
	require(t, "unshare")
	j := &job{t: t, dir: shortDir(t)}
	j.address = filepath.Join(j.dir, "door")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()),
		"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", self(t), "inside", "door", j.address)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "OF_THE_JOB=yes", "HOME=" + j.dir}
	begin(t, cmd)
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // unshare itself passes no SIGTERM on

	client := j.sshClient()
	run := func(command string) string {
		s, err := client.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.CombinedOutput(command)
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		return string(out)
	}
	if got := run("echo $OF_THE_JOB"); got != "yes\n" {
		t.Errorf("%q", got)
	}
	if got := run("(sleep 0.02 & sleep 0.02 & sleep 0.02 &) >/dev/null 2>&1; cat /proc/1/comm"); !strings.HasPrefix(got, "door.test") {
		t.Errorf("the first process is %q", got)
	}
	eventually(t, "the orphans' end", func() bool {
		return run("cat /proc/[0-9]*/stat 2>/dev/null | grep -c -E '\\) [SZ] 1 .*' || true") == "1\n"
	})
	if got := run("exit 0; true"); got != "" {
		t.Errorf("%q", got)
	}
}
