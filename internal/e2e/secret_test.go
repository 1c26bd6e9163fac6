//go:build linux

package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAJobsEnvironmentReachesItAndLeavesTheDatabasesWithIt(t *testing.T) {
	t.Parallel()
	const secret = "TOKEN=5ec2e7-that-only-the-job-may-know"
	l := newLab(t, 1)
	bid := slices.Insert(trainJob("bid", 100000), 1, "--env", secret)
	lease := strings.TrimSpace(l.haggle(bid...).wants(0).out.String())
	l.awaitStep(1, lease, 1)
	if !l.jobKnows(1, lease, secret) {
		t.Error("the job does not have the environment that was ordered")
	}
	l.haggle("stop", "--kill", lease).wants(0)
	l.settled(1, lease)
	for _, pattern := range []string{"haggle.db*", "*.log", "rig-1/haggled.db*", "rig-1/*.log", "rig-1/jobs/logs/*"} {
		files, err := filepath.Glob(filepath.Join(l.home, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
				continue // the pipe of a spare that is being made: nobody writes to it
			}
			if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s still holds the environment of a job that has ended", file)
			}
		}
	}
}

// jobKnows tells whether a process of a job has a line in its environment.
func (l *lab) jobKnows(rig int, lease, line string) bool {
	l.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		l.t.Fatal(err)
	}
	cgroup := []byte("/" + cgroupName(l.rigHome(rig)) + "/" + lease[:32])
	for _, file := range files {
		group, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(group, cgroup) {
			continue
		}
		env, err := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if err == nil && slices.Contains(strings.Split(string(env), "\x00"), line) {
			return true
		}
	}
	return false
}
