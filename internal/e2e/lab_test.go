//go:build linux

package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
)

// lab is a market of a test's own. It is taken down with the test, which fails if something is left.
type lab struct {
	t     *testing.T
	home  string
	env   []string // of the rigs
	agent *api.AgentClient
}

// newLab starts a lab: rig-1 has two RTX 4090, rig-2 two RTX 3090, rig-3 two H100. env changes the rigs' configuration.
func newLab(t *testing.T, rigs int, env ...string) *lab {
	t.Helper()
	requireLab(t)
	home := shortDir(t)
	paths, err := config.AgentPaths(home)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, home: home, env: env, agent: api.DialAgent(paths.Socket)}
	t.Cleanup(func() { l.down(rigs) })
	start(t, append([]string{"HAGGLE_HOME=" + home}, env...), "haggle", "lab", "up", "--rigs", strconv.Itoa(rigs)).wants(0)
	return l
}

// manyReceipts has rigs ask for a receipt every second, so that a crash meets some.
func manyReceipts() []string { return []string{"HAGGLED_RULES_FIRST=1s", "HAGGLED_RULES_INTERVAL=1s"} }

// shortDir makes a folder whose name leaves room for the sockets below it.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hge") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// down takes the lab down and looks for what it left.
func (l *lab) down(rigs int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.t.Context()), patience)
	defer cancel()
	var jobs []string
	for n := 1; n <= rigs; n++ {
		logs, _ := filepath.Glob(filepath.Join(l.rigHome(n), "jobs/logs/*.log")) // the pattern is well formed
		for _, log := range logs {
			jobs = append(jobs, strings.TrimSuffix(filepath.Base(log), ".log"))
		}
		if l.t.Failed() {
			l.tell(filepath.Join(l.rigHome(n), "haggled.log"))
		}
	}
	if l.t.Failed() {
		l.tell(filepath.Join(l.home, "agent.log"))
	}
	cmd := exec.CommandContext(ctx, programPath("haggle"), "lab", "down")
	cmd.Env = append(cleanEnv(), "HAGGLE_HOME="+l.home)
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Errorf("lab down: %v\n%s", err, out)
	}
	awaitNothingLeft(l.t, l.home, rigs, jobs)
}

// tell copies the end of a log into the test's own, of a test that failed.
func (l *lab) tell(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		return // it never was
	}
	l.t.Logf("the end of %s:\n%s", path, text[max(0, len(text)-3000):])
}

func (l *lab) rigHome(n int) string { return filepath.Join(l.home, "rig-"+strconv.Itoa(n)) }

// rig returns the client of a rig.
func (l *lab) rig(n int) *api.RigClient {
	l.t.Helper()
	paths, err := config.RigPaths(l.rigHome(n))
	if err != nil {
		l.t.Fatal(err)
	}
	return api.DialRig(paths.Socket)
}

// rigStatus asks a rig that runs how it is.
func (l *lab) rigStatus(n int) view.RigStatus {
	l.t.Helper()
	s, err := l.rig(n).Status(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// haggle starts a command of the lab's renter.
func (l *lab) haggle(args ...string) *program {
	l.t.Helper()
	return start(l.t, []string{"HAGGLE_HOME=" + l.home}, "haggle", args...)
}

// haggled gives a rig an order of its owner.
func (l *lab) haggled(n int, args ...string) *program {
	l.t.Helper()
	return start(l.t, []string{"HAGGLED_HOME=" + l.rigHome(n)}, "haggled", args...)
}

// killRig ends a rig's daemon as a crash would.
func (l *lab) killRig(n int) {
	l.t.Helper()
	kill(l.t, l.rigStatus(n).PID)
}

// killAgent ends the renter's agent as a crash would.
func (l *lab) killAgent() {
	l.t.Helper()
	s, err := l.agent.Status(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	kill(l.t, s.PID)
}

// restartRig starts a rig's daemon as `lab up` does and returns when it answers.
func (l *lab) restartRig(n int) {
	l.t.Helper()
	home := l.rigHome(n)
	log, err := os.OpenFile(filepath.Join(home, "haggled.log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.CommandContext(context.WithoutCancel(l.t.Context()), programPath("haggled"), "serve", "--home", home)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(cleanEnv(), l.env...), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }() // lab down ends it
	await(l.t, "an answer of the rig that was started again", func() bool {
		_, err := l.rig(n).Status(l.t.Context())
		return err == nil
	})
}

// newest returns the newest lease of a rig, of which there must be one.
func (l *lab) newest(rig int) view.Lease {
	l.t.Helper()
	list, err := l.rig(rig).Leases(l.t.Context(), true)
	if err != nil || len(list) == 0 {
		l.t.Fatalf("leases of rig %d: %v, %v", rig, list, err)
	}
	return slices.MaxFunc(list, func(a, b view.Lease) int { return int(a.Created - b.Created) })
}

// rigLease returns a lease as its rig sees it.
func (l *lab) rigLease(rig int, id string) view.Lease {
	l.t.Helper()
	list, err := l.rig(rig).Leases(l.t.Context(), true)
	if err != nil {
		l.t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(v view.Lease) bool { return v.ID == id })
	if i < 0 {
		l.t.Fatalf("rig %d does not know lease %s", rig, id)
	}
	return list[i]
}

// awaitFree waits until a rig has so many free slots.
func (l *lab) awaitFree(rig, slots int) {
	l.t.Helper()
	await(l.t, strconv.Itoa(slots)+" free slots", func() bool { return l.rigStatus(rig).Free == slots })
}

// logFile returns the bytes of a job's log file as the rig keeps them.
func (l *lab) logFile(rig int, lease string) string {
	text, err := os.ReadFile(filepath.Join(l.rigHome(rig), "jobs/logs", lease[:32]+".log"))
	if err != nil {
		return "" // not yet
	}
	return string(text)
}

// awaitStep waits until a job has come to a step, by nothing but its log file: all daemons may be dead.
func (l *lab) awaitStep(rig int, lease string, step int) {
	l.t.Helper()
	line := "step " + strconv.Itoa(step) + "/"
	await(l.t, line+" in the job's log file", func() bool { return strings.Contains(l.logFile(rig, lease), line) })
}

// settled waits until both sides have signed the final receipt of a lease and wants it to be the same one: the rig's
// files hold the bytes that the agent's evidence ends with. It returns the receipt and wants `haggle verify` to agree.
func (l *lab) settled(rig int, lease string) view.Receipt {
	l.t.Helper()
	ctx := l.t.Context()
	var list []view.Receipt
	await(l.t, "the final receipt, signed by both", func() bool {
		var err error
		list, err = l.agent.Receipts(ctx, lease)
		return err == nil && len(list) > 0 && list[len(list)-1].Kind == string(market.ReceiptFinal) &&
			len(list[len(list)-1].SignedBy) == 2 && l.rigLease(rig, lease).Debt == string(market.DebtFinal)
	})
	last := list[len(list)-1]
	theirs := l.rigLease(rig, lease)
	if theirs.Receipts != last.Seq || theirs.Signed != last.Total || theirs.BilledMs != last.BilledMs {
		l.t.Errorf("the agent's last receipt is %+v, the rig says %+v", last, theirs)
	}
	data, err := l.agent.Evidence(ctx, lease)
	if err != nil {
		l.t.Fatal(err)
	}
	evidence, err := market.DecodeEvidence(data)
	if err != nil {
		l.t.Fatal(err)
	}
	sealed := evidence.Receipts[len(evidence.Receipts)-1]
	if !l.keeps(rig, sealed) {
		l.t.Errorf("the rig does not keep the receipt that ends the agent's evidence")
	}
	file := filepath.Join(l.t.TempDir(), "lease.evidence")
	l.haggle("export", lease, "-o", file).wants(0)
	l.haggle("verify", file).wants(0)
	return last
}

// keeps tells whether a rig's database holds some bytes.
func (l *lab) keeps(rig int, data []byte) bool {
	for _, name := range []string{"haggled.db", "haggled.db-wal"} {
		text, err := os.ReadFile(filepath.Join(l.rigHome(rig), name))
		if err == nil && strings.Contains(string(text), string(data)) {
			return true
		}
	}
	return false
}

// wantSteps wants a log with each of a job's steps once and in order.
func wantSteps(t *testing.T, log string, steps int) {
	t.Helper()
	next := 1
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "step ") {
			continue
		}
		if want := "step " + strconv.Itoa(next) + "/" + strconv.Itoa(steps) + " "; !strings.HasPrefix(line, want) {
			t.Fatalf("the log has %q where %q should be:\n%s", line, want, log)
		}
		next++
	}
	if next != steps+1 {
		t.Fatalf("the log ends after step %d of %d:\n%s", next-1, steps, log)
	}
}
