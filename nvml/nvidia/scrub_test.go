//go:build linux && cgo

package nvidia_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"haggle/nvml"
	"haggle/nvml/nvidia"
	"haggle/nvml/nvmltest"
)

const (
	mib  = 1 << 20
	dirt = 0xa5
	// cudaOwn is what the context of the fake libcuda takes for itself, at the start of the memory.
	cudaOwn = 2 * mib
)

// silicon is a fake libcuda with the memory of one card, which somebody has used.
type silicon struct {
	fake
	size int
}

// newSilicon makes the memory of a card; id is the digits of its UUID.
func newSilicon(t *testing.T, variant, id string, size int) *silicon {
	t.Helper()
	requireGCC(t)
	s := &silicon{fake{t: t, library: filepath.Join(t.TempDir(), "libcuda.so.1"), state: make(map[string]string)}, size}
	copied(t, cudas()[variant], s.library)
	_, digits, _ := strings.Cut(id, "-")
	s.set("uuid", strings.ReplaceAll(digits, "-", ""))
	if err := os.WriteFile(s.library+".memory", bytes.Repeat([]byte{dirt}, size), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// dirty is where old bytes are left: from the first to behind the last, or 0 and 0.
func (s *silicon) dirty(from, to int) (first, last int) {
	s.t.Helper()
	memory, err := os.ReadFile(s.library + ".memory")
	if err != nil {
		s.t.Fatal(err)
	}
	part := memory[from:to]
	if first = bytes.IndexByte(part, dirt); first < 0 {
		return 0, 0
	}
	return from + first, from + bytes.LastIndexByte(part, dirt) + 1
}

func TestNVIDIADriverScrubs(t *testing.T) {
	s := newSilicon(t, "full", uuid(0), 32*mib)
	nvmltest.Scrubs(t, newRig(t, "full", "RTX4090").open(nvidia.Config{CUDA: s.library}))
}

func TestAScrubbedCardHoldsNothingOfItsTenant(t *testing.T) {
	for name, x := range map[string]struct {
		size, held, largest int
	}{
		"a free card":                 {64 * mib, 0, 0},
		"memory that is no power":     {54 * mib, 0, 0},
		"memory in small pieces":      {64 * mib, 0, 4},
		"a process that holds memory": {64 * mib, 24, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSilicon(t, "full", uuid(1), x.size)
			if x.held > 0 {
				s.set("held", itoa(x.held))
			}
			if x.largest > 0 {
				s.set("largest", itoa(x.largest))
			}
			d := newRig(t, "full", "RTX4090 A100").open(nvidia.Config{CUDA: s.library})
			n, err := d.Scrub(t.Context(), uuid(1))
			end := x.size - x.held*mib
			if want := int64(end - cudaOwn); err != nil || n != want {
				t.Fatalf("scrub: %d, %v, want %d", n, err, want)
			}
			if first, last := s.dirty(cudaOwn, end); last != 0 {
				t.Errorf("old bytes are left from %d to %d", first, last)
			}
			if first, last := s.dirty(0, x.size); last == 0 || first != 0 {
				t.Errorf("what others hold was written: what is left is from %d to %d", first, last)
			}
			if d.Starts() != 1 {
				t.Errorf("the readings needed %d children", d.Starts())
			}
		})
	}
}

func TestAScrubThatDoesNotWorkSaysSo(t *testing.T) {
	r := newRig(t, "full", "RTX4090")
	for name, x := range map[string]struct {
		key, value string
		want       string
	}{
		"memory that keeps what it held": {"forget", "1", "not zero"},
		"no memory":                      {"held", "64", "a process holds it"},
		"CUDA that does not start":       {"fail.cuInit", "999", "start CUDA: CUDA error 999"},
		"a card that is in use":          {"fail.cuDevicePrimaryCtxRetain", "46", "open the card: CUDA error 46"},
		"a fault while writing":          {"fail.cuMemsetD32_v2", "719", "overwrite memory: CUDA error 719"},
		"a fault at the end":             {"fail.cuCtxSynchronize", "214", "CUDA error 214"},
		"a fault while reading":          {"fail.cuMemcpyDtoH_v2", "1", "read memory back: CUDA error 1"},
		"a child that dies":              {"end.cuMemAlloc_v2", "1", "the child process ended: exit status 9"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSilicon(t, "full", uuid(0), 32*mib)
			s.set(x.key, x.value)
			d := r.open(nvidia.Config{CUDA: s.library})
			n, err := d.Scrub(t.Context(), uuid(0))
			if n != 0 || err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("scrub: %d, %v, want an error with %q", n, err, x.want)
			}
			sampleOf(t, d, uuid(0))
			if d.Starts() != 1 {
				t.Errorf("the readings needed %d children", d.Starts())
			}
		})
	}
}

func TestAScrubThatHangsIsCut(t *testing.T) {
	s := newSilicon(t, "full", uuid(0), 32*mib)
	s.set("hang.cuMemsetD32_v2", "600000")
	d := newRig(t, "full", "RTX4090").open(nvidia.Config{CUDA: s.library, ScrubGrace: 300 * time.Millisecond})
	if _, err := d.Scrub(t.Context(), uuid(0)); !errors.Is(err, nvml.ErrTimeout) {
		t.Errorf("scrub: %v, want ErrTimeout", err)
	}
	sampleOf(t, d, uuid(0)) // while it hung, and after
	s.set("hang.cuMemsetD32_v2", "")
	until(t, func() bool { _, err := d.Scrub(t.Context(), uuid(0)); return err == nil })
}

func TestACallersEndEndsTheScrub(t *testing.T) {
	s := newSilicon(t, "full", uuid(0), 32*mib)
	s.set("hang.cuMemsetD32_v2", "600000")
	d := newRig(t, "full", "RTX4090").open(nvidia.Config{CUDA: s.library})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := d.Scrub(ctx, uuid(0)); !errors.Is(err, nvml.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("scrub: %v, want ErrTimeout with the context's error", err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := d.Scrub(t.Context(), uuid(0))
		failed <- err
	}()
	_ = d.Close()
	if err := <-failed; !errors.Is(err, nvml.ErrClosed) {
		t.Errorf("scrub while the driver is closed: %v, want ErrClosed", err)
	}
}

func TestTwoScrubsOfOneCardDoNotMeet(t *testing.T) {
	s := newSilicon(t, "full", uuid(0), 32*mib)
	d := newRig(t, "full", "RTX4090").open(nvidia.Config{CUDA: s.library})
	done := make(chan error, 4)
	for range cap(done) {
		go func() {
			n, err := d.Scrub(t.Context(), uuid(0))
			if err == nil && n != 30*mib {
				err = errors.New("it did not get all the memory")
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestWhatCannotBeScrubbedIsToldApart(t *testing.T) {
	r := newRig(t, "full", "RTX4090 A100")
	s := newSilicon(t, "full", "MIG-00000000-0000-4000-9000-000001000001", 32*mib)
	d := r.open(nvidia.Config{CUDA: s.library})
	slice := "MIG-00000000-0000-4000-9000-000001000001"
	wants := func(uuid string, want error) {
		t.Helper()
		if _, err := d.Scrub(t.Context(), uuid); !errors.Is(err, want) {
			t.Errorf("scrub of %s: %v, want %v", uuid, err, want)
		}
	}
	wants("no-such-card", nvml.ErrNoCard)
	wants(uuid(9), nvml.ErrNoCard)
	wants(uuid(0), nvml.ErrNoCard) // CUDA sees another
	wants(slice, nvml.ErrNoCard)   // no card is in MIG mode
	r.set("1.mig", "1")
	wants(uuid(1), nvml.ErrUnsupported)
	wants("MIG-00000000-0000-4000-9000-000001000002", nvml.ErrNoCard)
	if n, err := d.Scrub(t.Context(), slice); err != nil || n != 30*mib {
		t.Errorf("scrub of a slice: %d, %v", n, err)
	}
	if first, last := s.dirty(cudaOwn, s.size); last != 0 {
		t.Errorf("old bytes are left from %d to %d", first, last)
	}
	r.set("0.lost", "1")
	wants(uuid(0), nvml.ErrLost)
}

func TestAMachineWithoutCUDADoesNotScrub(t *testing.T) {
	for name, library := range map[string]string{
		"no library": "libcuda.so.404", "an old one": newSilicon(t, "old", uuid(0), 32*mib).library,
	} {
		d := newRig(t, "full", "RTX4090").open(nvidia.Config{CUDA: library})
		if _, err := d.Scrub(t.Context(), uuid(0)); !errors.Is(err, nvml.ErrUnsupported) {
			t.Errorf("%s: %v, want ErrUnsupported", name, err)
		}
	}
}

// TestCUDASeesOneCardAndNothingOfTheParents looks at what CUDA is started with.
func TestCUDASeesOneCardAndNothingOfTheParents(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	t.Setenv("CUDA_INJECTION64_PATH", "/nonexistent/library")
	s := newSilicon(t, "full", uuid(0), 32*mib)
	d := newRig(t, "full", "RTX4090").open(nvidia.Config{CUDA: s.library})
	if n, err := d.Scrub(t.Context(), uuid(0)); err != nil || n != 30*mib {
		t.Errorf("scrub: %d, %v", n, err)
	}
}
