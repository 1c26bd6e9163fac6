package runtimetest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"haggle/runtime"
	"haggle/runtime/archive"
	"haggle/runtime/runtimetest"
)

func TestTheFakeConforms(t *testing.T) {
	fake := runtimetest.NewFake(map[string]runtimetest.Program{"/probe": runtimetest.Probe})
	t.Cleanup(fake.Shutdown)
	runtimetest.Conformance(t, runtimetest.Subject{
		Runtime:  fake,
		Program:  archive.File{Size: 1, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x")), nil }},
		Patience: 30 * time.Second,
	})
}

func newFake(t *testing.T) (*runtimetest.Fake, runtime.Spec) {
	t.Helper()
	fake := runtimetest.NewFake(map[string]runtimetest.Program{"probe": runtimetest.Probe})
	t.Cleanup(fake.Shutdown)
	img := fake.AddImage("probe", v1.ImageConfig{Entrypoint: []string{"probe"}})
	return fake, runtime.Spec{ID: "a", Image: img.Digest, Args: []string{"stubborn"}}
}

func TestGraceIsVirtualTimeUnderSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, spec := newFake(t)
		ctx := t.Context()
		if err := errors.Join(fake.Create(ctx, spec), fake.Start(ctx, "a")); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := fake.Stop(ctx, "a", 2*time.Minute); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got != 2*time.Minute {
			t.Errorf("killed after %s", got)
		}
		if u, err := fake.Usage(ctx, "a"); err != nil || u.CPUNanos != uint64(2*time.Minute) {
			t.Errorf("usage %+v: %v", u, err)
		}
		fake.Shutdown()
	})
}

func TestJobsGoOnWhileTheEngineIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, spec := newFake(t)
		ctx := t.Context()
		if err := errors.Join(fake.Create(ctx, spec), fake.Start(ctx, "a")); err != nil {
			t.Fatal(err)
		}
		events, err := fake.Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		fake.SetDown(true)
		if _, open := <-events; open {
			t.Error("the watcher is not told")
		}
		if _, err := fake.Status(ctx, "a"); !errors.Is(err, runtime.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		fake.SetDown(false)
		if st, err := fake.Status(ctx, "a"); err != nil || st.State != runtime.Running {
			t.Errorf("%+v: %v", st, err)
		}
		fake.Shutdown()
	})
}

func TestTheFakeFailsAndLosesOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, spec := newFake(t)
		ctx := t.Context()
		boom := errors.New("boom")
		fake.Fail("Create", boom)
		if err := fake.Create(ctx, spec); !errors.Is(err, boom) {
			t.Errorf("got %v", err)
		}
		if err := errors.Join(fake.Create(ctx, spec), fake.Start(ctx, "a")); err != nil {
			t.Fatal(err)
		}
		fake.Lose("a")
		synctest.Wait()
		if st, err := fake.Status(ctx, "a"); err != nil || st.State != runtime.Stopped || st.Exit != nil {
			t.Errorf("%+v: %v", st, err)
		}
		if _, err := fake.Usage(ctx, "a"); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		fake.Shutdown()
	})
}

func TestAWatcherEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, _ := newFake(t)
		ctx, cancel := context.WithCancel(t.Context())
		events, err := fake.Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, open := <-events; open {
			t.Error("an event from nowhere")
		}
		fake.Shutdown()
	})
}
