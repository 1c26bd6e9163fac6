//go:build linux

package containerd_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"haggle/runtime"
)

func TestWhatDoorsCost(t *testing.T) {
	if !full() {
		t.Skip("figures for people: set HAGGLE_FULL")
	}
	w := newVisitWorld(t)
	image := w.image(t)
	ctx := w.context(t)
	var create, start, first, later, visit []time.Duration
	clock := func(list *[]time.Duration, do func() error) {
		t.Helper()
		began := time.Now()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		*list = append(*list, time.Since(began))
	}
	for n := range 9 {
		id := fmt.Sprintf("job-%d", n)
		clock(&create, func() error {
			return w.engine.Create(ctx, runtime.Spec{ID: id, Image: image, Args: []string{"stubborn"}, DiskBytes: 64 << 20})
		})
		clock(&start, func() error { return w.engine.Start(ctx, id) })
		enter := func() error {
			c, err := w.engine.Enter(ctx, id)
			if err == nil {
				err = c.Close()
			}
			return err
		}
		clock(&first, enter)
		for range 10 {
			clock(&later, enter)
		}
		if n == 0 {
			for _, pid := range w.doors(t) {
				status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
				t.Logf("a door holds %q: %v", memoryLine(string(status)), err)
			}
			began := time.Now()
			if err := echo(w.enter(t, id), 0, 512<<20); err != nil {
				t.Error(err)
			}
			t.Logf("512 MiB there and back: %s", time.Since(began))
		}
		if err := w.engine.Kill(ctx, id); err != nil {
			t.Fatal(err)
		}
		clock(&visit, enter)
		if err := w.engine.Remove(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	w.end()
	w.cfg.DoorProgram = nil
	w.open(t)
	var bareCreate, bareStart []time.Duration
	for n := range 9 {
		id := fmt.Sprintf("bare-%d", n)
		clock(&bareCreate, func() error {
			return w.engine.Create(ctx, runtime.Spec{ID: id, Image: image, Args: []string{"stubborn"}, DiskBytes: 64 << 20})
		})
		clock(&bareStart, func() error { return w.engine.Start(ctx, id) })
		if err := w.engine.Remove(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	for name, list := range map[string][]time.Duration{"create without a door": bareCreate, "start without a door": bareStart, "create": create, "start": start, "first": first, "later": later, "visit": visit} {
		slices.Sort(list)
		t.Logf("%s: median %s of %d, the best %s", name, list[len(list)/2], len(list), list[0])
	}
}

func memoryLine(status string) string {
	for line := range strings.Lines(status) {
		if strings.HasPrefix(line, "VmRSS:") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
