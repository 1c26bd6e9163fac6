//go:build linux

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
)

// daemonUser is a user whom nobody else is, for the daemon of a rig of two programs.
const daemonUser = 61234

// splitRig is a rig of two programs beside a lab: the helper is root, and the daemon is not.
type splitRig struct {
	ownRig
	helperHome string
	helper     *exec.Cmd // the helper that was started last
}

// newSplitRig starts both.
func newSplitRig(t *testing.T, l *lab) *splitRig {
	t.Helper()
	r := &splitRig{ownRig: ownRig{t: t, home: shortDir(t)}, helperHome: shortDir(t)}
	r.log = filepath.Join(t.TempDir(), "split.log")
	paths, err := config.RigPaths(r.home)
	if err != nil {
		t.Fatal(err)
	}
	r.api = api.DialRig(paths.Socket)
	r.configure(l)
	t.Cleanup(r.down)
	r.startHelper()
	r.startDaemon()
	return r
}

// configure writes both configurations. The daemon's home is its own, with the image in it; the helper's is root's.
func (r *splitRig) configure(l *lab) {
	r.t.Helper()
	helper, err := config.HelperPaths(r.helperHome)
	if err != nil {
		r.t.Fatal(err)
	}
	network := l.rigStatus(1).Network
	image, err := os.ReadFile(filepath.Join(l.home, "lab.tar"))
	if err != nil {
		r.t.Fatal(err)
	}
	write(r.t, filepath.Join(r.home, "lab.tar"), string(image))
	// The same port after a restart: a renter's agent comes back to it at once.
	port, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		r.t.Fatal(err)
	}
	listen := fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port.Addr().(*net.TCPAddr).Port)
	if err := port.Close(); err != nil {
		r.t.Fatal(err)
	}
	write(r.t, filepath.Join(r.home, "haggled.toml"), fmt.Sprintf("network = %q\nname = \"own\"\nlisten = [%q]\nbootstrap = [%q]\n"+
		"images = [{name = \"lab\", archive = \"lab.tar\"}]\n[cards]\nsimulated = [{profile = \"RTX_3090\", count = 2}]\n"+
		"[helper]\nsocket = %q\n[prices]\nslot = \"0.18\"\n[rules]\nmin = \"1s\"\nnotice = \"10s\"\nfirst = \"1s\"\ninterval = \"1s\"\n",
		network.Name, listen, network.Addrs[0], helper.Helper))
	write(r.t, filepath.Join(r.helperHome, "haggled.toml"),
		fmt.Sprintf("network = %q\n[cards]\nsimulated = [{profile = \"RTX_3090\", count = 2}]\n[helper]\nuser = \"%d\"\n", network.Name, daemonUser))
	for _, path := range []string{r.home, filepath.Join(r.home, "lab.tar"), filepath.Join(r.home, "haggled.toml")} {
		if err := os.Chown(path, daemonUser, daemonUser); err != nil {
			r.t.Fatal(err)
		}
	}
	for _, path := range []string{r.helperHome, filepath.Dir(programPath("haggled"))} { // others are to reach the socket and the program
		if err := os.Chmod(path, 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
}

// startHelper starts a helper with no more capabilities than its service unit leaves it.
func (r *splitRig) startHelper() {
	r.t.Helper()
	unit, err := os.ReadFile("../../packaging/systemd/haggled-helper.service")
	if err != nil {
		r.t.Fatal(err)
	}
	_, list, found := strings.Cut(string(unit), "\nCapabilityBoundingSet=~")
	list, _, _ = strings.Cut(list, "\n")
	if !found {
		r.t.Fatal("the helper's unit takes away no capability")
	}
	var less []string
	for _, name := range strings.Fields(list) {
		less = append(less, "-"+strings.ToLower(strings.TrimPrefix(name, "CAP_")))
	}
	// A strict umask is what many service managers start with.
	r.helper = r.service("sh", "-c", `umask 0077; exec "$@"`, "sh", "setpriv", "--bounding-set", strings.Join(less, ","), programPath("haggled"), "helper", "--home", r.helperHome)
}

// startDaemon starts a daemon as its unit does, and returns when it answers and has done with its image.
func (r *splitRig) startDaemon() {
	r.t.Helper()
	user := strconv.Itoa(daemonUser)
	r.service("setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
		"--no-new-privs", programPath("haggled"), "serve", "--home", r.home)
	await(r.t, "an answer of the daemon", func() bool {
		s, err := r.api.Status(r.t.Context())
		return err == nil && len(s.Images)+len(s.Warnings) > 0
	})
}

// service starts a program as systemd does, and returns when it says that it is ready. Its end is not waited for.
func (r *splitRig) service(name string, args ...string) *exec.Cmd {
	r.t.Helper()
	log, err := os.OpenFile(r.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close()
	dir := shortDir(r.t)
	notify := &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"}
	news, err := net.ListenUnixgram("unixgram", notify)
	if err != nil {
		r.t.Fatal(err)
	}
	defer news.Close()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(notify.Name, 0o666), news.SetReadDeadline(time.Now().Add(patience))); err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(r.t.Context()), name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = append(cleanEnv(), "NOTIFY_SOCKET="+notify.Name), log, log, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }() // down ends it
	word := make([]byte, 100)
	if n, err := news.Read(word); err != nil || string(word[:n]) != "READY=1" {
		r.t.Fatalf("%s %s says %q to systemd: %v", name, args, word[:n], err)
	}
	return cmd
}

// down ends both, takes away what the engine made, and looks for what is left.
func (r *splitRig) down() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.t.Context()), patience)
	defer cancel()
	if r.t.Failed() {
		text, _ := os.ReadFile(r.log) // it is for people
		r.t.Logf("the end of %s:\n%s", r.log, text[max(0, len(text)-6000):])
	}
	if err := r.end(ctx); err != nil {
		r.t.Error(err)
	}
	if err := syscall.Kill(r.helper.Process.Pid, syscall.SIGTERM); err != nil {
		r.t.Error(err)
	}
	await(r.t, "the end of the helper", func() bool { return !alive(r.helper.Process.Pid) })
	purge := exec.CommandContext(ctx, programPath("haggled"), "helper", "purge", "--yes", "--home", r.helperHome)
	purge.Env = cleanEnv()
	if out, err := purge.CombinedOutput(); err != nil {
		r.t.Errorf("purge: %v\n%s", err, out)
	}
	left := append(processes(r.home, nil), processes(r.helperHome, nil)...)
	left = append(left, linesWith(r.t, "/proc/self/mountinfo", r.helperHome)...)
	left = append(left, cgroups(map[string]bool{cgroupName(r.helperHome): true})...)
	if len(left) > 0 {
		r.t.Errorf("the rig left something behind:\n%s", strings.Join(left, "\n"))
	}
}

// as runs a command as the daemon's user, with as little as the daemon has, and tells whether it succeeds.
func (r *splitRig) as(args ...string) (string, bool) {
	r.t.Helper()
	user := strconv.Itoa(daemonUser)
	cmd := exec.CommandContext(r.t.Context(), "setpriv", append([]string{"--reuid", user, "--regid", user, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"}, args...)...)
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// jobLog returns a job's log file as the helper keeps it.
func (r *splitRig) jobLog(lease string) string {
	text, _ := os.ReadFile(filepath.Join(r.helperHome, "jobs/logs", lease[:32]+".log")) // empty before there is one
	return string(text)
}

// settled waits until both sides have signed the final receipt of a lease, wants them to agree and `haggle verify` to do so.
func (r *splitRig) settled(l *lab, lease string) view.Receipt {
	r.t.Helper()
	var list []view.Receipt
	await(r.t, "the final receipt, signed by both", func() bool {
		var err error
		list, err = l.agent.Receipts(r.t.Context(), lease)
		return err == nil && len(list) > 0 && list[len(list)-1].Kind == string(market.ReceiptFinal) &&
			len(list[len(list)-1].SignedBy) == 2 && r.lease(lease).Debt == string(market.DebtFinal)
	})
	last, theirs := list[len(list)-1], r.lease(lease)
	if theirs.Receipts != last.Seq || theirs.Signed != last.Total || theirs.BilledMs != last.BilledMs {
		r.t.Errorf("the agent's last receipt is %+v, the rig says %+v", last, theirs)
	}
	file := filepath.Join(r.t.TempDir(), "lease.evidence")
	l.haggle("export", lease, "-o", file).wants(0)
	l.haggle("verify", file).wants(0)
	return last
}

// running starts a job and returns it when both have signed a receipt of it.
func (r *splitRig) running(l *lab, steps int, more ...string) (run *program, lease string) {
	r.t.Helper()
	args := []string{"run", "--offer", "own", "--image", "lab", "--for", "10m", "--budget", "1.00", "--", "train", "--step-time", "100ms", "--steps", strconv.Itoa(steps)}
	run = l.haggle(append(args, more...)...)
	run.awaitOut("step 1/")
	await(r.t, "a receipt that both signed", func() bool { // a job may speak before its rig has seen that it runs
		return slices.ContainsFunc(r.status().Leases, func(v view.Lease) bool {
			lease = v.ID
			return v.State == string(market.JobRunning) && v.Receipts > 0
		})
	})
	return run, lease
}

func TestARigOfTwoPrograms(t *testing.T) {
	t.Parallel()
	l := newProcessLab(t, 1)
	r := newSplitRig(t, l)
	awaitOffer(t, []string{"HAGGLE_HOME=" + l.home}, "own")
	t.Run("the daemon has no capability and reaches no file of the helper", r.hasNothing)
	t.Run("a whole job runs and the receipts agree", func(t *testing.T) {
		run, lease := r.running(l, 20, "--exit", "7")
		run.wants(7)
		wantSteps(t, run.out.String(), 20)
		wantExit(t, r.settled(l, lease), market.ReasonCompleted, 7)
	})
	t.Run("the death of the daemon loses nothing", func(t *testing.T) {
		run, lease := r.running(l, 90)
		began := r.lease(lease).Since
		kill(t, r.status().PID)
		dead := time.Now()
		await(t, "the job's steps without its daemon", func() bool { return strings.Contains(r.jobLog(lease), "step 40/") })
		lasting := time.Since(dead)
		r.startDaemon()
		r.goesOn(l, run, lease, began, lasting)
	})
	t.Run("the death of the helper loses nothing", func(t *testing.T) {
		run, lease := r.running(l, 90)
		began := r.lease(lease).Since
		kill(t, r.helper.Process.Pid)
		dead := time.Now()
		await(t, "word of the daemon that the helper is away", func() bool { return strings.Contains(r.status().Engine, "unavailable") })
		await(t, "the job's steps without the helper", func() bool { return strings.Contains(r.jobLog(lease), "step 40/") })
		lasting := time.Since(dead)
		r.startHelper()
		r.goesOn(l, run, lease, began, lasting)
	})
	t.Run("the death of both at once loses nothing", func(t *testing.T) {
		run, lease := r.running(l, 90)
		began := r.lease(lease).Since
		kill(t, r.status().PID)
		kill(t, r.helper.Process.Pid)
		dead := time.Now()
		await(t, "the job's steps without either", func() bool { return strings.Contains(r.jobLog(lease), "step 40/") })
		lasting := time.Since(dead)
		r.startHelper()
		r.startDaemon()
		r.goesOn(l, run, lease, began, lasting)
	})
}

// goesOn wants that a job which outlived an outage ends well and that no moment of the outage is billed.
func (r *splitRig) goesOn(l *lab, run *program, lease string, began int64, outage time.Duration) {
	r.t.Helper()
	run.wants(0)
	wantSteps(r.t, run.out.String(), 90)
	final := r.settled(l, lease)
	wantExit(r.t, final, market.ReasonCompleted, 0)
	const noticed = 1100 // ms in which the end of the engine's answers comes to be known, and one tick
	whole, dead := r.lease(lease).Since-began, outage.Milliseconds()
	if final.BilledMs == 0 || final.BilledMs > whole-dead+noticed {
		r.t.Errorf("%d ms are billed; the job ran for %d, for %d of them out of sight", final.BilledMs, whole, dead)
	}
}

// hasNothing looks at the daemon as the kernel does, and tries what it could try if it were somebody else's.
func (r *splitRig) hasNothing(t *testing.T) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.status().PID))
	if err != nil {
		t.Fatal(err)
	}
	facts := map[string]string{}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		facts[name] = strings.Join(strings.Fields(value), " ")
	}
	user := strconv.Itoa(daemonUser)
	for name, want := range map[string]string{
		"Uid": strings.Join([]string{user, user, user, user}, " "), "Gid": strings.Join([]string{user, user, user, user}, " "), "Groups": "", "NoNewPrivs": "1",
		"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000", "CapBnd": "0000000000000000", "CapAmb": "0000000000000000",
	} {
		if facts[name] != want {
			t.Errorf("%s of the daemon is %q, want %q", name, facts[name], want)
		}
	}
	run := filepath.Join(r.helperHome, "run")
	if out, ok := r.as("test", "-w", filepath.Join(run, "helper.sock")); !ok {
		t.Errorf("the helper's socket is not for the daemon: %s", out)
	}
	for _, what := range [][]string{
		{"ls", run},
		{"ls", filepath.Join(r.helperHome, "containerd")},
		{"ls", filepath.Join(r.helperHome, "jobs")},
		{"ls", filepath.Join(r.helperHome, "jobs/logs")},
		{"cat", filepath.Join(r.helperHome, "helper.lock")},
		{"cat", filepath.Join(r.helperHome, "haggled.toml")},
		{"touch", filepath.Join(r.helperHome, "x")},
		{"touch", filepath.Join(run, "x")},
		{"test", "-w", filepath.Join(run, "containerd/containerd.sock")},
		{"test", "-w", filepath.Join(run, "containerd/containerd.sock.ttrpc")},
		{"test", "-r", "/run/containerd/containerd.sock"},
		{"ls", "/run/containerd/s"},
	} {
		if out, ok := r.as(what...); ok {
			t.Errorf("the daemon's user can %q: %s", what, out)
		}
	}
	doctor := start(t, []string{"HAGGLED_HOME=" + r.home}, "haggled", "doctor")
	<-doctor.ended
	if want := "ok     root                    the helper at " + run; !strings.Contains(strings.Join(strings.Fields(doctor.out.String()), " "), strings.Join(strings.Fields(want), " ")) {
		t.Errorf("doctor has no %q:\n%s", want, doctor.out.String())
	}
}
