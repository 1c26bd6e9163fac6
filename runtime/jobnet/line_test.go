//go:build linux

package jobnet_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"haggle/runtime"
	"haggle/runtime/jobnet"
)

// clock is the rig's, as a test sets it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

func TestTheMonthsTrafficIsBounded(t *testing.T) {
	now := &clock{now: time.Date(2026, 11, 30, 23, 59, 0, 0, time.UTC)}
	const most = 20000
	bounded := func(c *jobnet.Config) { c.Clock, c.Profile.MonthlyBytes = now.read, most }
	w := newWorld(t, bounded)
	j := w.attach("job")
	s := w.stream(j)
	line := strings.Repeat("x", 500)
	var err error
	for range 1000 {
		if err = s.echo(line); err != nil {
			break
		}
	}
	if err == nil {
		t.Fatal("a job has sent and received more than its month")
	}
	if got := j.traffic(); got.In+got.Out > most || got.In+got.Out < most/2 {
		t.Errorf("%+v of %d", got, most)
	}
	if _, err := j.dial(internet + ":8000"); err == nil {
		t.Error("a new connection is possible")
	}
	month := func() runtime.Protection { return find(w.nets.Check(t.Context()), jobnet.CheckMonth)[0] }
	t.Run("what stands in the way is told", func(t *testing.T) {
		if p := month(); p.Holds || (!strings.Contains(p.Found, "2026-11") || p.Fix == "") {
			t.Errorf("%+v", p)
		}
		if err := w.nets.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if rules := w.nft("list", "table", "inet", "haggle"); !strings.Contains(rules, "the traffic of 2026-11 is used up") {
			t.Error(rules)
		}
	})
	t.Run("a restart does not help", func(t *testing.T) {
		w.stop()
		w.start()
		if _, err := j.dial(internet + ":8000"); err == nil {
			t.Error("a new connection is possible")
		}
	})
	t.Run("nor do flushed rules", func(t *testing.T) {
		w.nft("flush", "ruleset")
		if err := w.nets.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := j.dial(internet + ":8000"); err == nil {
			t.Error("a new connection is possible")
		}
	})
	t.Run("the next month does", func(t *testing.T) {
		now.set(now.read().Add(time.Minute))
		if err := w.nets.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		j.roundTrip()
		if p := month(); !p.Holds {
			t.Errorf("%+v", p)
		}
	})
	t.Run("without its protection nothing is bounded", func(t *testing.T) {
		w := newWorld(t, func(c *jobnet.Config) { bounded(c); c.Without = []string{jobnet.MonthlyCap} })
		s := w.stream(w.attach("job"))
		for range 60 {
			if err := s.echo(line); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestJobsShareTheLine(t *testing.T) {
	w := newWorld(t, nil) // 100 up, 200 down
	one := w.attach("one")
	check := func(what string, j *job, up, down int64) {
		t.Helper()
		if gotUp, gotDown := w.rates(j); gotUp != up || gotDown != down {
			t.Errorf("%s: job %s has %d up and %d down, not %d and %d", what, j.id, gotUp, gotDown, up, down)
		}
	}
	check("alone", one, 80e6, 180e6)
	if one.UpBits != 80e6 || one.DownBits != 180e6 {
		t.Errorf("told %+v", one.Attached)
	}
	two := w.process("two")
	limit := runtime.Network{Mode: runtime.NetworkInternet, UpBits: 10e6, DownBits: 1e9}
	made, err := w.nets.Attach(t.Context(), "two", two.pid, limit)
	if err != nil {
		t.Fatal(err)
	}
	two.Attached = made
	check("with a modest one", one, 70e6, 90e6)
	check("the modest one", two, 10e6, 90e6)
	three := w.attach("three")
	check("of three", one, 35e6, 60e6)
	check("of three", three, 35e6, 60e6)
	// The daemon restarts, and a job ends: the others get its part.
	w.stop()
	w.start()
	if _, err := w.nets.Detach(t.Context(), "three"); err != nil {
		t.Fatal(err)
	}
	check("after one has left", one, 70e6, 90e6)
	// A job that has ended without a word takes no part in the change of others, and hinders none.
	two.end()
	if _, err := w.nets.Detach(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	check("alone again", one, 80e6, 180e6)
}

func TestALimitHoldsBackWhatIsSent(t *testing.T) {
	w := newWorld(t, nil)
	j := w.attach("job")
	limit := runtime.Network{Mode: runtime.NetworkInternet, UpBits: 1e6}
	if _, err := w.nets.Attach(t.Context(), "job", j.pid, limit); err != nil {
		t.Fatal(err)
	}
	const tries = 400 // of a kilobyte: more than three seconds' worth
	text := strings.Repeat("x", 1000)
	for range tries {
		j.mark.send(internet, trapPort, text)
	}
	eventually(t, "a mark passes the full queue", func() bool {
		j.mark.send(internet, markPort, "mark")
		return w.mark.arrives("mark", 100*time.Millisecond)
	})
	if got := w.trap.count(text, tries, 0); got == 0 || got > tries*3/4 {
		t.Errorf("%d of %d have passed", got, tries)
	}
}
