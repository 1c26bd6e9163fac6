package runtime_test

import (
	"errors"
	"strings"
	"testing"

	"haggle/runtime"
)

func validSpec() runtime.Spec {
	return runtime.Spec{
		ID:      "job-1",
		Labels:  map[string]string{"lease": "abc"},
		Image:   "sha256:" + strings.Repeat("0a", 32),
		Args:    []string{"run"},
		Env:     []string{"A=b=c", "EMPTY="},
		Workdir: "/work",
		Devices: []runtime.DeviceID{{Class: runtime.SimulatedGPU, UUID: "SIM-1"}},
	}
}

func TestASpecIsValidOrNamesItsFault(t *testing.T) {
	if err := validSpec().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*runtime.Spec){
		"an empty id":               func(s *runtime.Spec) { s.ID = "" },
		"a long id":                 func(s *runtime.Spec) { s.ID = strings.Repeat("a", 65) },
		"an id that is a path":      func(s *runtime.Spec) { s.ID = "../a" },
		"an upper-case id":          func(s *runtime.Spec) { s.ID = "A" },
		"an image by name":          func(s *runtime.Spec) { s.Image = "debian:12" },
		"a short digest":            func(s *runtime.Spec) { s.Image = "sha256:00" },
		"a digest in upper case":    func(s *runtime.Spec) { s.Image = "sha256:" + strings.Repeat("0A", 32) },
		"a label with a space":      func(s *runtime.Spec) { s.Labels = map[string]string{"a b": ""} },
		"a label with a newline":    func(s *runtime.Spec) { s.Labels = map[string]string{"a": "\n"} },
		"a long label":              func(s *runtime.Spec) { s.Labels = map[string]string{"a": strings.Repeat("x", 2000)} },
		"a zero byte in a variable": func(s *runtime.Spec) { s.Env = []string{"A=\x00"} },
		"a variable without a name": func(s *runtime.Spec) { s.Env = []string{"=x"} },
		"a variable without value":  func(s *runtime.Spec) { s.Env = []string{"x"} },
		"a zero byte in an arg":     func(s *runtime.Spec) { s.Args = []string{"\x00"} },
		"too many args":             func(s *runtime.Spec) { s.Args = make([]string, runtime.MaxArgs+1) },
		"too large args": func(s *runtime.Spec) {
			for range 9 {
				s.Args = append(s.Args, strings.Repeat("x", runtime.MaxArgBytes))
			}
		},
		"a relative folder":   func(s *runtime.Spec) { s.Workdir = "work" },
		"an unclean folder":   func(s *runtime.Spec) { s.Workdir = "/a/../b" },
		"a device twice":      func(s *runtime.Spec) { s.Devices = append(s.Devices, s.Devices[0]) },
		"a device path":       func(s *runtime.Spec) { s.Devices[0].UUID = "/dev/x" },
		"a negative limit":    func(s *runtime.Spec) { s.MemoryBytes = -1 },
		"too little memory":   func(s *runtime.Spec) { s.MemoryBytes = 1 },
		"a limit beyond all":  func(s *runtime.Spec) { s.Pids = 1 << 60 },
		"no processor at all": func(s *runtime.Spec) { s.CPUMillis = 1 },
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			s := validSpec()
			spoil(&s)
			if err := s.Validate(); !errors.Is(err, runtime.ErrInvalidSpec) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAZeroLimitAndItsDefaultAreTheSameSpec(t *testing.T) {
	s := validSpec()
	if s.Hash() != s.WithDefaults().Hash() {
		t.Error("the hash tells a default from its value")
	}
	other := s
	other.Pids = 5
	if s.Hash() == other.Hash() {
		t.Error("the hash does not see a limit")
	}
	if err := s.WithDefaults().Validate(); err != nil {
		t.Error(err)
	}
	small := runtime.Spec{MemoryBytes: 64 << 20}.WithDefaults()
	if small.ShmBytes != 32<<20 {
		t.Errorf("/dev/shm of %d bytes in a small job", small.ShmBytes)
	}
}

func TestAnExitCodeNamesItsSignal(t *testing.T) {
	for code, want := range map[int]string{0: "", 7: "", 128: "", 137: "KILL", 143: "TERM", 255: ""} {
		if got := runtime.NewExit(code, 0); got.Signal != want || got.Code != code || got.OOM {
			t.Errorf("%d gives %+v", code, got)
		}
	}
	if !runtime.NewExit(1, 2).OOM || runtime.NewExit(0, 2).OOM {
		t.Error("memory kills count for failed jobs, and only for them")
	}
}
