//go:build linux

package containerd_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"haggle/runtime"
)

func TestAFullDiskIsAnEventAndStandsInTheExit(t *testing.T) {
	w := newWorld(t)
	ctx := w.context(t)
	events, err := w.engine.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	spec := runtime.Spec{ID: "filler", Image: w.image(t), Args: []string{"fill", "/work/big"}, DiskBytes: 32 << 20}
	if err := errors.Join(w.engine.Create(ctx, spec), w.engine.Start(ctx, "filler")); err != nil {
		t.Fatal(err)
	}
	for e := range events {
		if e.Kind == runtime.EventDiskFull {
			if e.ID != "filler" || e.At.IsZero() {
				t.Errorf("event %+v", e)
			}
			break
		}
	}
	if u, err := w.engine.Usage(ctx, "filler"); err != nil || u.DiskBytes < 16<<20 || u.DiskBytes > 32<<20 {
		t.Errorf("usage %+v: %v", u, err)
	}
	if err := w.engine.Stop(ctx, "filler", patience); err != nil {
		t.Fatal(err)
	}
	if st := w.awaitExit(t, "filler"); st.Exit == nil || *st.Exit != (runtime.Exit{Code: 143, Signal: "TERM", DiskFull: true}) {
		t.Errorf("it ended as %+v", st.Exit)
	}
	if u, err := w.engine.Usage(ctx, "filler"); err != nil || u.DiskBytes < 16<<20 {
		t.Errorf("usage after the end %+v: %v", u, err)
	}
}

func TestAnEndedJobsDiskTakesOnlyTheRoomOfWhatIsOnIt(t *testing.T) {
	w := newWorld(t)
	ctx := w.context(t)
	const size = 256 << 20
	spec := runtime.Spec{ID: "ended", Image: w.image(t), Args: []string{"stubborn"}, DiskBytes: size}
	if err := errors.Join(w.engine.Create(ctx, spec), w.engine.Start(ctx, "ended")); err != nil {
		t.Fatal(err)
	}
	taken := func() int64 {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(w.cfg.Root, "disks", "*.img"))
		if err != nil || len(files) != 1 {
			t.Fatalf("disks %q: %v", files, err)
		}
		var st syscall.Stat_t
		if err := syscall.Stat(files[0], &st); err != nil {
			t.Fatal(err)
		}
		return st.Blocks * 512
	}
	if n := taken(); n < size {
		t.Errorf("the disk of a running job has %d of its %d bytes", n, size)
	}
	if err := w.engine.Kill(ctx, "ended"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); taken() > size/2; {
		if time.Now().After(deadline) {
			t.Fatalf("the disk of the ended job still takes %d bytes", taken())
		}
		if err := w.engine.Kill(ctx, "ended"); err != nil { // it asks the engine, which is what time is needed for
			t.Fatal(err)
		}
	}
}

func TestSecretsAreFilesThatNoDiskHolds(t *testing.T) {
	w := newWorld(t)
	ctx := w.context(t)
	const secret = "correct horse battery staple"
	spec := runtime.Spec{
		ID: "keeper", Image: w.image(t), Args: []string{"stubborn"}, Secrets: map[string][]byte{"token": []byte(secret)},
	}
	reader := spec
	reader.ID, reader.Args = "reader", []string{"cat", "/run/secrets/token"}
	lister := spec
	lister.ID, lister.Args = "lister", []string{"stat", "/run/secrets", "/run/secrets/token"}
	writer := spec
	writer.ID, writer.Args = "writer", []string{"write", "/run/secrets/token", "x"}
	for _, s := range []runtime.Spec{spec, reader, lister, writer} {
		if err := errors.Join(w.engine.Create(ctx, s), w.engine.Start(ctx, s.ID)); err != nil {
			t.Fatal(err)
		}
	}
	if out, _ := w.read(t, "reader", 0, ""); out != secret {
		t.Errorf("the job reads %q", out)
	}
	if out, _ := w.read(t, "lister", 0, ""); out != "/run/secrets 0 0 500\n/run/secrets/token 0 0 400\n" {
		t.Errorf("the job sees %q", out)
	}
	if st := w.awaitExit(t, "writer"); st.Exit == nil || st.Exit.Code == 0 {
		t.Errorf("writing ended as %+v", st.Exit)
	}
	w.end()
	w.open(t) // a restart loses nothing
	path := filepath.Join(w.cfg.JobsDir, "keeper", "secrets", "token")
	if b, err := os.ReadFile(path); err != nil || string(b) != secret {
		t.Errorf("after a restart it is %q: %v", b, err)
	}
	for _, dir := range []string{w.cfg.Root, w.cfg.State} {
		if found := grep(t, dir, secret); len(found) > 0 {
			t.Errorf("it stands in %q", found)
		}
	}
	if err := w.engine.Remove(w.context(t), "keeper"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it is still there after the removal")
	}
}

// grep names the files below dir that hold text. Disks of jobs are left out: a job may do there what it wants.
func grep(t *testing.T, dir, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".img") {
			return nil
		}
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), text) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
