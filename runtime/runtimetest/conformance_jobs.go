package runtimetest

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"haggle/runtime"
)

func (s *suite) life(t *testing.T) {
	ctx := s.context(t)
	events, err := s.Runtime.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	spec := s.spec(t, "exit", "7")
	id := s.create(t, spec)
	st, err := s.Runtime.Status(ctx, id)
	if err != nil || st.State != runtime.Created || st.Exit != nil || !st.StartedAt.IsZero() || st.Labels["lease"] != "l-"+id {
		t.Errorf("created: %+v: %v", st, err)
	}
	if err := s.Runtime.Start(ctx, id); err != nil {
		t.Fatal(err)
	}
	st = s.await(t, id)
	wantExit(t, st, runtime.Exit{Code: 7})
	if st.StartedAt.IsZero() || st.ExitedAt.Before(st.StartedAt) || len(st.Labels) != 1 {
		t.Errorf("stopped: %+v", st)
	}
	var kinds []runtime.EventKind
	for e := range events {
		if e.ID != id {
			continue
		}
		kinds = append(kinds, e.Kind)
		if e.Kind == runtime.EventExited {
			if e.Exit == nil || e.Exit.Code != 7 || e.At.IsZero() {
				t.Errorf("event %+v, exit %+v", e, e.Exit)
			}
			break
		}
	}
	if !slices.Equal(kinds, []runtime.EventKind{runtime.EventStarted, runtime.EventExited}) {
		t.Errorf("events %v", kinds)
	}
	if err := s.Runtime.Create(ctx, spec); err != nil {
		t.Errorf("creating the same job after its end: %v", err)
	}
	if err := s.Runtime.Start(ctx, id); !errors.Is(err, runtime.ErrConflict) {
		t.Errorf("starting an ended job: %v", err)
	}
	all, err := s.Runtime.List(ctx)
	if err != nil || !slices.ContainsFunc(all, func(l runtime.Status) bool { return l.ID == id && l.State == runtime.Stopped }) {
		t.Errorf("listed as %+v: %v", all, err)
	}
}

func (s *suite) followBeforeStart(t *testing.T) {
	id := s.create(t, s.spec(t, "print", "late"))
	r, err := s.Runtime.Log(s.context(t), id, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := s.Runtime.Start(s.context(t), id); err != nil {
		t.Fatal(err)
	}
	if err := s.Runtime.Start(s.context(t), id); err != nil && !errors.Is(err, runtime.ErrConflict) {
		t.Errorf("the second start: %v", err) // it may have ended meanwhile
	}
	var out strings.Builder
	if _, ended, err := runtime.Demux(r, &out, io.Discard); !ended || err != nil || out.String() != "late\n" {
		t.Errorf("%q, ended %v: %v", out.String(), ended, err)
	}
}

func (s *suite) logOffsets(t *testing.T) {
	id := s.start(t, "both")
	out, errs := s.output(t, id)
	if out != "out" || errs != "err" {
		t.Errorf("streams %q and %q", out, errs)
	}
	s.await(t, id)
	for offset, want := range map[int64]int64{0: 30, 11: 19, 22: 8, 30: 0} {
		r, err := s.Runtime.Log(s.context(t), id, offset, false)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, r)
		if n != want || err != nil {
			t.Errorf("from offset %d come %d bytes, want %d: %v", offset, n, want, err)
		}
		_ = r.Close()
	}
}

func (s *suite) logLimit(t *testing.T) {
	spec := s.spec(t, "flood", "300000")
	spec.LogLimitBytes = 10_000
	id := s.create(t, spec)
	if err := s.Runtime.Start(s.context(t), id); err != nil {
		t.Fatal(err)
	}
	out, errs := s.output(t, id)
	if len(out) < 5_000 || len(out) > 10_000 || !strings.Contains(errs, "log is full") {
		t.Errorf("%d bytes out, errors %q", len(out), errs)
	}
	wantExit(t, s.await(t, id), runtime.Exit{})
}

func (s *suite) imageCommand(t *testing.T) {
	id := s.start(t)
	if out, errs := s.output(t, id); out != "from the image\n" {
		t.Errorf("got %q, %q", out, errs)
	}
}

func (s *suite) cards(t *testing.T) {
	spec := s.spec(t, "env")
	spec.Devices = []runtime.DeviceID{{Class: runtime.SimulatedGPU, UUID: "SIM-a"}, {Class: runtime.SimulatedGPU, UUID: "SIM-b"}}
	spec.Env = []string{"HAGGLE_LEASE=x", "FROM=job"}
	id := s.create(t, spec)
	if err := s.Runtime.Start(s.context(t), id); err != nil {
		t.Fatal(err)
	}
	out, _ := s.output(t, id)
	lines := strings.Split(out, "\n")
	for _, want := range []string{"HAGGLE_CARDS=SIM-a,SIM-b", "NVIDIA_VISIBLE_DEVICES=void", "HAGGLE_LEASE=x", "FROM=job"} {
		if !slices.Contains(lines, want) {
			t.Errorf("%s is missing in %q", want, lines)
		}
	}
	if strings.Contains(out, "LD_PRELOAD") {
		t.Error("the image's LD_PRELOAD came through")
	}
}

func (s *suite) polite(t *testing.T) {
	id := s.start(t, "polite")
	s.awaitText(t, id, "ready")
	for range 2 { // the second time it has ended
		if err := s.Runtime.Stop(s.context(t), id, s.Patience); err != nil {
			t.Fatal(err)
		}
	}
	wantExit(t, s.await(t, id), runtime.Exit{Code: 143, Signal: "TERM"})
	if out, _ := s.output(t, id); !strings.HasSuffix(out, "saved\n") {
		t.Errorf("got %q", out)
	}
}

func (s *suite) stubborn(t *testing.T) {
	id := s.start(t, "stubborn")
	s.awaitText(t, id, "ready")
	if err := s.Runtime.Stop(s.context(t), id, 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	wantExit(t, s.await(t, id), runtime.Exit{Code: 137, Signal: "KILL"})
}

func (s *suite) impatient(t *testing.T) {
	id := s.start(t, "stubborn")
	s.awaitText(t, id, "ready")
	ctx, cancel := context.WithTimeout(s.context(t), 100*time.Millisecond)
	defer cancel()
	if err := s.Runtime.Stop(ctx, id, time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	wantExit(t, s.await(t, id), runtime.Exit{Code: 137, Signal: "KILL"})
}

func (s *suite) kill(t *testing.T) {
	id := s.start(t, "polite")
	s.awaitText(t, id, "ready")
	for range 2 {
		if err := s.Runtime.Kill(s.context(t), id); err != nil {
			t.Fatal(err)
		}
	}
	wantExit(t, s.await(t, id), runtime.Exit{Code: 137, Signal: "KILL"})
}

func (s *suite) stopCreated(t *testing.T) {
	id := s.create(t, s.spec(t, "exit", "0"))
	if err := s.Runtime.Stop(s.context(t), id, s.Patience); err != nil {
		t.Fatal(err)
	}
	st := s.await(t, id)
	if st.Exit == nil || st.Exit.Signal != "KILL" || !st.StartedAt.IsZero() {
		t.Errorf("%+v, exit %+v", st, st.Exit)
	}
}

func (s *suite) oom(t *testing.T) {
	if s.NoMemoryLimit {
		t.Skip("this engine keeps no limit of memory")
	}
	spec := s.spec(t, "alloc", "500")
	spec.MemoryBytes = 64 << 20
	id := s.create(t, spec)
	if err := s.Runtime.Start(s.context(t), id); err != nil {
		t.Fatal(err)
	}
	wantExit(t, s.await(t, id), runtime.Exit{Code: 137, Signal: "KILL", OOM: true})
}

func (s *suite) usage(t *testing.T) {
	id := s.start(t, "spin")
	s.awaitText(t, id, "ready")
	var first runtime.Usage
	for ctx := s.context(t); ; {
		u, err := s.Runtime.Usage(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if first.CPUNanos == 0 {
			first = u
		}
		if u.MemoryBytes == 0 || u.Pids == 0 {
			t.Fatalf("a running job uses %+v", u)
		}
		if u.CPUNanos > first.CPUNanos {
			break
		}
	}
	if err := s.Runtime.Kill(s.context(t), id); err != nil {
		t.Fatal(err)
	}
	s.await(t, id)
	last, err := s.Runtime.Usage(s.context(t), id)
	if err != nil || last.CPUNanos < first.CPUNanos || last.MemoryBytes != 0 || last.Pids != 0 {
		t.Errorf("after the end %+v: %v", last, err)
	}
}

func (s *suite) remove(t *testing.T) {
	for _, run := range []bool{false, true} {
		id := s.create(t, s.spec(t, "stubborn"))
		if run {
			if err := s.Runtime.Start(s.context(t), id); err != nil {
				t.Fatal(err)
			}
			s.awaitText(t, id, "ready")
		}
		if err := s.Runtime.Remove(s.context(t), id); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Runtime.Status(s.context(t), id); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("status: %v", err)
		}
		if _, err := s.Runtime.Log(s.context(t), id, 0, false); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("log: %v", err)
		}
	}
}

func (s *suite) sweep(t *testing.T) {
	keep := s.start(t, "polite")
	gone := []string{s.start(t, "stubborn"), s.create(t, s.spec(t, "exit", "0"))}
	report, err := s.Runtime.Sweep(s.context(t), func(id string) bool { return id == keep })
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(report.Jobs)
	slices.Sort(gone)
	if !slices.Equal(report.Jobs, gone) || len(report.Snapshots) > 0 || len(report.Logs) > 0 {
		t.Errorf("swept %+v, want %v", report, gone)
	}
	st, err := s.Runtime.Status(s.context(t), keep)
	if err != nil || st.State != runtime.Running {
		t.Errorf("the kept job is %+v: %v", st, err)
	}
}
