//go:build linux

package e2e_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"haggle/internal/view"
	"haggle/market"
)

// train orders a job of some steps on the test's own rig. Its checkpoints go where there is room.
func trainOwn(t *testing.T, verb string, steps int, more ...string) []string {
	t.Helper()
	args := []string{
		verb, "--offer", "own", "--image", "lab", "--for", "10m", "--budget", "1.00", "--", "train",
		"--checkpoint", filepath.Join(t.TempDir(), "ckpt.json"), "--step-time", "100ms", "--steps", strconv.Itoa(steps),
	}
	return append(args, more...)
}

// awaitOffer waits until a renter's agent lists a rig.
func awaitOffer(t *testing.T, env []string, rig string) {
	t.Helper()
	await(t, "the offer of "+rig, func() bool {
		p := start(t, env, "haggle", "offers")
		<-p.ended
		return strings.Contains(p.out.String(), " "+rig+" ")
	})
}

func TestAFullDiskOfARigStopsNewLeasesAndNoJob(t *testing.T) {
	t.Parallel()
	l := newProcessLab(t, 1)
	disk := smallDisk(t, 160<<20)
	rig := l.ownRig(t, disk, "")
	env := []string{"HAGGLE_HOME=" + l.home}
	awaitOffer(t, env, "own")

	run := l.haggle(trainOwn(t, "run", 240, "--lines-per-step", "20")...)
	run.awaitOut("step 5/240")
	ends := l.haggle(trainOwn(t, "run", 60, "--exit", "7")...)
	ends.awaitOut("step 1/60")
	long := rig.status().Leases
	makeRoom := fillDisk(t, disk)

	await(t, "word of the rig that it cannot store", func() bool {
		w := strings.Join(rig.status().Warnings, "\n")
		return strings.Contains(w, "cannot be stored") && strings.Contains(w, "the log says why")
	})
	before := rig.status().Free
	p := l.haggle(trainOwn(t, "bid", 1)...)
	<-p.ended
	// One of the two jobs may still hold the slot. A bid that finds one free finds the disk full.
	switch code := p.cmd.ProcessState.ExitCode(); {
	case code == int(market.ClassFailed):
		wantSaid(t, p, "the disk of the rig is full: nothing new is taken on", "what runs goes on")
	case code != int(market.ClassRefused) || before > 0:
		t.Errorf("a bid for a rig with a full disk ends with %d: %s", code, p.err.String())
	}
	stuck := billed(rig.status().Leases)
	// The second job ends by itself while nothing can be written; how is not lost.
	await(t, "the end of the shorter job", func() bool { return len(jobsOf(t, rig.home)) < 2 })
	makeRoom()

	ends.wants(7)
	run.wants(0)
	if !strings.Contains(run.err.String(), "bytes of output are missing here, the rig's disk was full") {
		t.Errorf("nobody says that output is missing:\n%s", run.err.String())
	}
	if !strings.Contains(run.out.String(), "step 240/240") {
		t.Errorf("the log does not go on with room again:\n%s", run.out.String())
	}
	for _, v := range long {
		await(t, "a final receipt", func() bool { return rig.lease(v.ID).Debt == string(market.DebtFinal) })
		if now := rig.lease(v.ID); now.BilledMs < stuck[v.ID] {
			t.Errorf("%d ms were billed and are %d", stuck[v.ID], now.BilledMs)
		}
		file := filepath.Join(t.TempDir(), "lease.evidence")
		l.haggle("export", v.ID, "-o", file).wants(0)
		l.haggle("verify", file).wants(0)
		if n := countLines(t, rig.log, "lease cannot go on\" lease="+v.ID[:8]); n != 1 {
			t.Errorf("the log says %d times that lease %s cannot go on", n, v.ID[:8])
		}
	}
	if w := rig.status().Warnings; len(w) > 0 {
		t.Errorf("with room again the rig warns of %q", w)
	}
	l.haggle(trainOwn(t, "run", 2)...).wants(0)
}

// billed returns what each of some leases was billed.
func billed(list []view.Lease) map[string]int64 {
	ms := map[string]int64{}
	for _, v := range list {
		ms[v.ID] = v.BilledMs
	}
	return ms
}

// jobsOf lists the processes of a rig's jobs, which run in the rig's home. The programs behind their doors run there too.
func jobsOf(t *testing.T, home string) []string {
	t.Helper()
	var jobs []string
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		dir, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(dir, home+"/jobs/jobs/") {
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
		if err == nil && strings.Contains(string(line), "--steps") {
			jobs = append(jobs, link)
		}
	}
	return jobs
}

func TestAFullDiskOfAnAgentStopsNewBidsAndNoJob(t *testing.T) {
	t.Parallel()
	l := newProcessLab(t, 1)
	rig := l.ownRig(t, shortDir(t), "")
	disk := smallDisk(t, 1<<20)
	knobs, err := os.ReadFile(filepath.Join(l.home, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(disk, "config.toml"), string(knobs))
	env := []string{"HAGGLE_HOME=" + disk}
	stopAgent(t, env)
	awaitOffer(t, env, "own")

	run := start(t, env, "haggle", trainOwn(t, "run", 80)...)
	run.awaitOut("step 5/80")
	lease := rig.status().Leases[0].ID
	await(t, "a receipt", func() bool { return rig.lease(lease).Receipts > 0 })
	makeRoom := fillDisk(t, disk)
	bid := start(t, env, "haggle", trainOwn(t, "bid", 1)...).wants(int(market.ClassFailed))
	wantSaid(t, bid, "the disk of the agent is full: nothing new is taken on", "make room there")
	await(t, "word of the agent that it cannot store", func() bool {
		return strings.Contains(start(t, env, "haggle", "status").wants(0).out.String(), "a lease cannot be stored")
	})
	signed := rig.lease(lease).Receipts
	run.awaitOut("step 50/80")
	if now := rig.lease(lease); now.State != string(market.JobRunning) || now.Receipts > signed {
		t.Errorf("meanwhile the job is %s, and %d receipts became %d", now.State, signed, now.Receipts)
	}
	if free := rig.status().Free; free != 1 {
		t.Errorf("%d slots are free: the bid that could not be stored holds one", free)
	}
	makeRoom()

	run.wants(0)
	wantSteps(t, run.out.String(), 80)
	file := filepath.Join(t.TempDir(), "lease.evidence")
	start(t, env, "haggle", "export", lease, "-o", file).wants(0)
	start(t, env, "haggle", "verify", file).wants(0)
	if out := start(t, env, "haggle", "status").wants(0).out.String(); strings.Contains(out, "warning") {
		t.Errorf("with room again there is a warning:\n%s", out)
	}
	start(t, env, "haggle", trainOwn(t, "run", 2)...).wants(0)
}

func TestARigServesWithoutAnImageThatCannotBeHadAndSaysSo(t *testing.T) {
	t.Parallel()
	l := newProcessLab(t, 1)
	home := shortDir(t)
	write(t, filepath.Join(home, "garbage.tar"), strings.Repeat("garbage ", 1000))
	rig := l.ownRig(t, home, "")
	if err := rig.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	knobs, err := os.ReadFile(filepath.Join(home, "haggled.toml"))
	if err != nil {
		t.Fatal(err)
	}
	more := "images = [{name = \"bad\", archive = \"garbage.tar\"}, {name = \"gone\", archive = \"gone.tar\"}, "
	write(t, filepath.Join(home, "haggled.toml"), strings.Replace(string(knobs), "images = [", more, 1))
	rig.up()
	await(t, "the good image", func() bool { return len(rig.status().Images) == 1 })
	for _, want := range []string{
		"image bad is not offered: " + home + "/garbage.tar: import image bad: bad image archive", "image gone is not offered: open its archive: open " + home + "/gone.tar: no such file",
	} {
		if !strings.Contains(strings.Join(rig.status().Warnings, "\n"), want) {
			t.Errorf("status has no %q: %q", want, rig.status().Warnings)
		}
	}
	status := start(t, []string{"HAGGLED_HOME=" + home}, "haggled", "status").wants(0).out.String()
	if strings.Count(status, "warning") != 2 || !strings.Contains(status, "images     lab") {
		t.Errorf("haggled status says\n%s", status)
	}
	doctor := start(t, []string{"HAGGLED_HOME=" + home}, "haggled", "doctor")
	<-doctor.ended
	for _, want := range []string{"note   image bad", "note   image gone", "ok     image lab"} {
		if !strings.Contains(doctor.out.String(), want) {
			t.Errorf("doctor has no %q:\n%s", want, doctor.out.String())
		}
	}
	if n := countLines(t, rig.log, "image is not offered"); n != 2 {
		t.Errorf("the log has %d lines about images", n)
	}
	awaitOffer(t, []string{"HAGGLE_HOME=" + l.home}, "own")
	l.haggle(trainOwn(t, "run", 2)...).wants(0)
}
