//go:build linux

package jobnet_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"haggle/runtime"
	"haggle/runtime/jobnet"
)

func (j *job) traffic() jobnet.Traffic {
	j.w.t.Helper()
	got, err := j.w.nets.Traffic(j.w.t.Context(), j.id)
	if err != nil {
		j.w.t.Fatal(err)
	}
	return got
}

func TestTrafficIsCountedAsIPPacketsThatPassed(t *testing.T) {
	w := newWorld(t, nil)
	j := w.attach("job")
	before := j.traffic()
	const header = 20 + 8
	s := w.socket(j.ns, 0)
	s.send(internet, trapPort, strings.Repeat("x", 1000))
	s.send(lanHost, trapPort, strings.Repeat("y", 1000)) // refused
	w.trap.reply(w.trap.wait(strings.Repeat("x", 1000)), strings.Repeat("z", 500))
	s.wait(strings.Repeat("z", 500))
	got := j.traffic()
	if got.Out-before.Out != 1000+header || got.In-before.In != 500+header {
		t.Errorf("out %d, in %d", got.Out-before.Out, got.In-before.In)
	}
	last, err := w.nets.Detach(t.Context(), "job")
	if err != nil || last != got {
		t.Errorf("the last count is %+v, not %+v: %v", last, got, err)
	}
	if _, err := w.nets.Traffic(t.Context(), "job"); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("after the end: %v", err)
	}
	if last, err := w.nets.Detach(t.Context(), "job"); err != nil || last != (jobnet.Traffic{}) {
		t.Errorf("detaching again: %+v, %v", last, err)
	}
}

func TestRulesThatSomeoneRemovesArePutBackAndNothingIsLost(t *testing.T) {
	for _, c := range []struct {
		name string
		harm []string
	}{
		{"all is flushed", []string{"flush", "ruleset"}},
		{"the table is deleted", []string{"delete", "table", "inet", "haggle"}},
		{"a chain is emptied", []string{"flush", "chain", "inet", "haggle", "leaving"}},
		{"a rule is added", []string{"insert", "rule", "inet", "haggle", "leaving", "accept"}},
		{"a job is taken out", []string{"flush", "set", "inet", "haggle", "jobs"}},
		{"a range is allowed", []string{"delete", "element", "inet", "haggle", "reserved", "{ 10.0.0.0/8 }"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			j := w.attach("job")
			s := w.stream(j)
			if err := s.echo("before"); err != nil {
				t.Fatal(err)
			}
			before, right := j.traffic(), jobnet.Steady(w.nft("-s", "list", "table", "inet", "haggle"))
			w.nft(c.harm...)
			eventually(t, "the rules are back", func() bool {
				return strings.Contains(w.nft("list", "tables"), "inet haggle") &&
					jobnet.Steady(w.nft("-s", "list", "table", "inet", "haggle")) == right
			})
			// A packet that was on its way while there were no rules left without the rig's address, and its answer ended the
			// connection: then a new one must work.
			if err := s.echo("after"); err != nil {
				if err := w.redial(j).echo("after"); err != nil {
					t.Errorf("no connection works: %v", err)
				}
			}
			if got := j.traffic(); got.In <= before.In || got.Out <= before.Out {
				t.Errorf("%+v after %+v", got, before)
			}
			if datagramTo(farInside, trapPort)(w, j) {
				t.Error("the house is open")
			}
		})
	}
}

func TestCountersThatSomeoneResetsGoOn(t *testing.T) {
	w := newWorld(t, nil)
	j := w.attach("job")
	before := j.traffic()
	w.nft("reset", "counters")
	if err := w.nets.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.roundTrip()
	if got := j.traffic(); got.In <= before.In || got.Out <= before.Out {
		t.Errorf("%+v after %+v", got, before)
	}
}

func TestARestartResetsNothing(t *testing.T) {
	w := newWorld(t, nil)
	j := w.attach("job")
	s := w.stream(j)
	before := j.traffic()
	w.stop()
	if err := s.echo("nobody is there"); err != nil {
		t.Fatalf("a job without a keeper: %v", err)
	}
	if datagramTo(farInside, trapPort)(w, j) {
		t.Error("the house is open without a keeper")
	}
	handles := w.nft("-a", "list", "table", "inet", "haggle")
	w.start()
	if err := s.echo("back again"); err != nil {
		t.Fatal(err)
	}
	got := j.traffic()
	if got.In <= before.In || got.Out <= before.Out {
		t.Errorf("%+v after %+v", got, before)
	}
	if was, is := handleOf(handles), handleOf(w.nft("-a", "list", "table", "inet", "haggle")); was != is {
		t.Errorf("the table was made anew: %s, %s", was, is)
	}
	if jobs, err := w.nets.Jobs(t.Context()); err != nil || !slices.Equal(jobs, []string{"job"}) {
		t.Errorf("jobs %q: %v", jobs, err)
	}
	again, err := w.nets.Attach(t.Context(), "job", j.pid, runtime.Network{Mode: runtime.NetworkInternet})
	if err != nil || again != j.Attached {
		t.Errorf("attached again: %+v, not %+v: %v", again, j.Attached, err)
	}
	if err := s.echo("still here"); err != nil {
		t.Errorf("attaching again cut a connection: %v", err)
	}
}

// handleOf is the number that the kernel gave the table.
func handleOf(listing string) string {
	first, _, _ := strings.Cut(listing, "\n")
	return first
}

// leftovers are all traces of jobs in the rig.
func (w *world) leftovers() (links []string, rules string) {
	w.t.Helper()
	in(w.t, w.rig, func() error {
		all, err := netlink.LinkList()
		for _, l := range all {
			if strings.HasPrefix(l.Attrs().Name, "haggle") {
				links = append(links, l.Attrs().Name)
			}
		}
		return err
	})
	return links, w.nft("-s", "list", "table", "inet", "haggle")
}

func TestJobsThatComeAndGoLeaveNothing(t *testing.T) {
	w := newWorld(t, nil)
	first := w.attach("first") // switches forwarding on
	if _, err := w.nets.Detach(t.Context(), first.id); err != nil {
		t.Fatal(err)
	}
	_, clean := w.leftovers()
	j := w.process("x")
	for i := range 20 {
		id := fmt.Sprintf("job-%d", i)
		if _, err := w.nets.Attach(t.Context(), id, j.pid, runtime.Network{Mode: runtime.NetworkInternet}); err != nil {
			t.Fatal(err)
		}
		w.socket(j.ns, 0).send(internet, trapPort, id)
		w.trap.wait(id)
		if i == 19 { // the last one's process ends first
			j.end()
		}
		if last, err := w.nets.Detach(t.Context(), id); err != nil || last.Out == 0 {
			t.Fatalf("%+v: %v", last, err)
		}
	}
	links, rules := w.leftovers()
	if len(links) > 0 {
		t.Errorf("links %q", links)
	}
	if diff := cmp.Diff(clean, rules); diff != "" {
		t.Errorf("rules: %s", diff)
	}
	if jobs, err := w.nets.Jobs(t.Context()); err != nil || len(jobs) > 0 {
		t.Errorf("jobs %q: %v", jobs, err)
	}
	if files, err := os.ReadDir(w.cfg.Dir); err != nil || len(files) != 1 {
		t.Errorf("files %v: %v", files, err)
	}
	w.stop()
	if err := w.nets.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(w.cfg.Dir); err != nil || len(files) != 0 {
		t.Errorf("files %v: %v", files, err)
	}
	if tables := w.nft("list", "tables"); tables != "" {
		t.Errorf("tables %q", tables)
	}
	if w.forwards("up0") {
		t.Error("the uplink still forwards")
	}
}

func (w *world) forwards(link string) bool {
	w.t.Helper()
	var b []byte
	in(w.t, w.rig, func() (err error) {
		b, err = os.ReadFile("/proc/sys/net/ipv4/conf/" + link + "/forwarding")
		return err
	})
	return strings.TrimSpace(string(b)) == "1"
}

func TestOnlyWhatJobsNeedForwards(t *testing.T) {
	w := newWorld(t, nil)
	if w.forwards("up0") {
		t.Fatal("the uplink forwards without a job")
	}
	w.attach("job")
	if !w.forwards("up0") || w.forwards("pub0") || w.forwards("all") {
		t.Errorf("uplink %v, other %v, all %v", w.forwards("up0"), w.forwards("pub0"), w.forwards("all"))
	}
	if !strings.Contains(w.nft("list", "set", "inet", "haggle", "guarded"), "up0") {
		t.Error("the uplink is not guarded")
	}
	// Another program makes the machine a router, as Docker does: then it is one, also after us.
	in(t, w.rig, func() error { return sysctl("ipv4/ip_forward", "1") })
	if err := w.nets.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(w.nft("list", "set", "inet", "haggle", "guarded"), "up0") {
		t.Error("a machine that routes is kept from it")
	}
	w.stop()
	if err := w.nets.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !w.forwards("up0") {
		t.Error("another program's forwarding was switched off")
	}
}

func TestForwardingThatIsSwitchedOffComesBack(t *testing.T) {
	w := newWorld(t, nil)
	j := w.attach("job")
	in(t, w.rig, func() error { return errors.Join(sysctl("ipv4/ip_forward", "1"), sysctl("ipv4/ip_forward", "0")) })
	if err := w.nets.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.roundTrip()
}

func TestANetworkThatTheRigComesIntoIsClosedToJobs(t *testing.T) {
	w := newWorld(t, nil)
	j := w.attach("job")
	w.address(w.out, "lan", "44.44.44.2/24")
	s := w.socket(j.ns, 0)
	s.send("44.44.44.2", trapPort, "still far away")
	w.trap.wait("still far away")
	w.address(w.rig, "up0", "44.44.44.10/24")
	eventually(t, "the new network is known", func() bool {
		return strings.Contains(w.nft("list", "set", "inet", "haggle", "connected"), "44.44.44.0/24")
	})
	s.send("44.44.44.2", trapPort, "now near") // on a flow that was allowed before
	if j.caught(w.trap, "now near") {
		t.Error("it is still reached")
	}
}

func TestAttachRefusesWhatIsNoJob(t *testing.T) {
	w := newWorld(t, nil)
	j := w.attach("job")
	gone := w.process("gone")
	gone.end()
	internet := runtime.Network{Mode: runtime.NetworkInternet}
	for _, c := range []struct {
		name string
		id   string
		pid  int
		net  runtime.Network
		want error
	}{
		{"this process, which is in the machine's own network", "a", os.Getpid(), internet, runtime.ErrConflict},
		{"its parent, which is there too", "a", os.Getppid(), internet, runtime.ErrConflict},
		{"a process that is gone", "a", gone.pid, internet, runtime.ErrConflict},
		{"the process of another job", "a", j.pid, internet, runtime.ErrConflict},
		{"no process", "a", 0, internet, runtime.ErrInvalidSpec},
		{"no id", "A/..", j.pid, internet, runtime.ErrInvalidSpec},
		{"a limit below zero", "a", j.pid, runtime.Network{Mode: runtime.NetworkInternet, UpBits: -1}, runtime.ErrInvalidSpec},
		{"a mode that is unknown", "a", j.pid, runtime.Network{Mode: "host"}, runtime.ErrInvalidSpec},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := w.nets.Attach(t.Context(), c.id, c.pid, c.net); !errors.Is(err, c.want) {
				t.Errorf("%v", err)
			}
		})
	}
	if made, err := w.nets.Attach(t.Context(), "none", os.Getpid(), runtime.Network{}); err != nil || made != (jobnet.Attached{}) {
		t.Errorf("no network: %+v, %v", made, err)
	}
	if jobs, err := w.nets.Jobs(t.Context()); err != nil || !slices.Equal(jobs, []string{"job"}) {
		t.Errorf("jobs %q: %v", jobs, err)
	}
	j.roundTrip()
}

func TestAJobMadeAnewUnderItsNameGoesOnCounting(t *testing.T) {
	w := newWorld(t, nil)
	before := w.attach("job")
	had := before.traffic()
	after := w.attach("job")
	if got := after.traffic(); got.In <= had.In || got.Out <= had.Out {
		t.Errorf("%+v after %+v", got, had)
	}
	if links, _ := w.leftovers(); len(links) != 1 {
		t.Errorf("links %q", links)
	}
}

func TestTracesWithoutARecordAreFoundAndRemoved(t *testing.T) {
	w := newWorld(t, nil)
	w.attach("job")
	w.stop()
	w.cfg.Dir = t.TempDir() // the records are lost, and nobody keeps the table
	nets, err := jobnet.New(w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.nets = nets
	if jobs, err := w.nets.Jobs(t.Context()); err != nil || !slices.Equal(jobs, []string{"job"}) {
		t.Fatalf("jobs %q: %v", jobs, err)
	}
	if _, err := w.nets.Detach(t.Context(), "job"); err != nil {
		t.Fatal(err)
	}
	if links, rules := w.leftovers(); len(links) > 0 || strings.Contains(rules, "in-job") {
		t.Errorf("links %q, rules %s", links, rules)
	}
	if jobs, err := w.nets.Jobs(t.Context()); err != nil || len(jobs) > 0 {
		t.Errorf("jobs %q: %v", jobs, err)
	}
}

func TestTwoRigsOnOneMachineDoNotDisturbEachOther(t *testing.T) {
	w := newWorld(t, nil)
	j := w.attach("job")
	other := *w
	other.cfg.Name, other.cfg.Dir = "second", t.TempDir()
	other.start()
	defer other.stop()
	k := other.attach("job")
	if k.Address == j.Address || !strings.HasPrefix(k.Interface, "second-") {
		t.Errorf("%+v beside %+v", k.Attached, j.Attached)
	}
	w.socket(j.ns, 0).send(k.Address.String(), trapPort, "to the other rig's job")
	if j.caught(k.trap, "to the other rig's job") {
		t.Error("jobs of two rigs reach each other")
	}
	other.stop()
	if err := other.nets.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.roundTrip()
}
