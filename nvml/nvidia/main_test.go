//go:build linux && cgo

package nvidia_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"haggle/nvml"
	"haggle/nvml/nvidia"
)

// The arguments that make the test's own program a child of the driver under test.
const (
	childArg  = "nvml-child"     // an honest one
	brokenArg = "nvml-broken"    // one that says what the next argument holds, and then does as the third says
	liarArg   = "nvml-liar"      // one that is honest, but to a question of its own says what the next argument holds
	symbolArg = "nvml-no-symbol" // one that ends as the dynamic linker ends it, until the function is denied
)

// TestMain plays the child when the driver under test starts this program again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case childArg:
			if err := nvidia.RunChild(os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case brokenArg:
			playBroken(unquoted(os.Args[2]), os.Args[3])
		case liarArg:
			playLiar(unquoted(os.Args[2]))
		case symbolArg:
			playNoSymbol(os.Args[2])
		}
	}
	code := m.Run()
	if dir, err := buildDir(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// unquoted is what strconv.Quote made an argument of, which cannot hold a zero byte.
func unquoted(arg string) string {
	says, err := strconv.Unquote(arg)
	if err != nil {
		os.Exit(6)
	}
	return says
}

func playBroken(says, then string) {
	_, _ = io.WriteString(os.Stdout, says)
	switch then {
	case "end":
		os.Exit(3)
	case "flood":
		for {
			if _, err := io.WriteString(os.Stdout, says); err != nil {
				os.Exit(4)
			}
		}
	default: // "wait" until the parent ends it
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
}

// firstQuestion reads it, and returns the child's input as if nobody had.
func firstQuestion() (string, io.Reader) {
	var head [4]byte
	if _, err := io.ReadFull(os.Stdin, head[:]); err != nil {
		os.Exit(5)
	}
	first := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(os.Stdin, first); err != nil {
		os.Exit(5)
	}
	return string(first), io.MultiReader(bytes.NewReader(head[:]), bytes.NewReader(first), os.Stdin)
}

func playLiar(says string) {
	first, again := firstQuestion()
	if !strings.Contains(first, `"op":"open"`) {
		playBroken(says, "wait")
	}
	if err := nvidia.RunChild(again, os.Stdout); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func playNoSymbol(symbol string) {
	first, again := firstQuestion()
	if !strings.Contains(first, fmt.Sprintf("%q", symbol)) {
		fmt.Fprintf(os.Stderr, "%s: symbol lookup error: %s: undefined symbol: %s\n", os.Args[0], os.Args[0], symbol)
		os.Exit(127)
	}
	if err := nvidia.RunChild(again, os.Stdout); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// buildDir is where the fake libraries lie.
var buildDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "fakenvml") })

// builds gives each variant of the fake library a function that builds it once and returns its path.
var builds = sync.OnceValue(func() map[string]func() (string, error) {
	all := make(map[string]func() (string, error))
	for _, variant := range []string{"full", "old", "thin", "bare", "empty"} {
		all[variant] = sync.OnceValues(func() (string, error) { return buildLibrary(variant) })
	}
	return all
})

func buildLibrary(variant string) (string, error) {
	find := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml")
	header, err := find.Output()
	if err != nil {
		return "", fmt.Errorf("find go-nvml: %w", err)
	}
	return compile(variant+".so", "testdata/fakenvml/fakenvml.c", "-Wno-deprecated-declarations",
		"-DFAKE_"+strings.ToUpper(variant), "-I"+filepath.Join(strings.TrimSpace(string(header)), "pkg/nvml"))
}

// cudas gives each variant of the fake libcuda a function that builds it once and returns its path.
var cudas = sync.OnceValue(func() map[string]func() (string, error) {
	all := make(map[string]func() (string, error))
	for _, variant := range []string{"full", "old"} {
		all[variant] = sync.OnceValues(func() (string, error) {
			return compile("cuda-"+variant+".so", "testdata/fakecuda/fakecuda.c", "-DFAKE_"+strings.ToUpper(variant),
				"-Wl,-soname,libcuda.so.1")
		})
	}
	return all
})

// compile builds a library from one file of C.
func compile(name, source string, flags ...string) (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	library := filepath.Join(dir, name)
	args := append([]string{"-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", library}, flags...)
	out, err := exec.CommandContext(context.Background(), "gcc", append(args, source, "-ldl")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the fake library %s: %w\n%s", name, err, out)
	}
	return library, nil
}

// copied puts a library that build makes at a path of its own.
func copied(t *testing.T, build func() (string, error), to string) {
	t.Helper()
	built, err := build()
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, code, 0o600); err != nil {
		t.Fatal(err)
	}
}

func requireGCC(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("gcc is missing; it is a package of Debian")
	}
	t.Skip("needs gcc")
}

// rig is a fake library of the driver's for reading cards.
type rig struct{ fake }

// newRig makes a rig with the cards, which are words of the fake library separated by blanks.
func newRig(t *testing.T, variant, cards string) *rig {
	t.Helper()
	requireGCC(t)
	r := &rig{fake{t: t, library: filepath.Join(t.TempDir(), "libnvidia-ml.so.1"), state: make(map[string]string)}}
	copied(t, builds()[variant], r.library)
	r.set("cards", cards)
	return r
}

// fake is a fake library and the state that it plays.
type fake struct {
	t       *testing.T
	library string
	mu      sync.Mutex
	state   map[string]string
}

// set changes one line of the state; an empty value takes it away.
func (f *fake) set(key, value string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state[key] = value
	if value == "" {
		delete(f.state, key)
	}
	var text strings.Builder
	for _, k := range slices.Sorted(maps.Keys(f.state)) {
		fmt.Fprintln(&text, k, f.state[k])
	}
	next := f.library + ".next"
	if err := os.WriteFile(next, []byte(text.String()), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(next, f.library+".state"); err != nil {
		f.t.Fatal(err)
	}
}

// open opens a driver on the rig; the configuration's command and library are filled in where they are empty.
func (r *rig) open(cfg nvidia.Config) *nvidia.Driver {
	r.t.Helper()
	cfg.Library = r.library
	return open(r.t, cfg)
}

func open(t *testing.T, cfg nvidia.Config) *nvidia.Driver {
	t.Helper()
	d, err := nvidia.Open(t.Context(), withDefaults(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func withDefaults(t *testing.T, cfg nvidia.Config) nvidia.Config {
	if cfg.Command == nil {
		cfg.Command = command(childArg)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second // no answer of a sound child takes that long, however busy the machine
	}
	cfg.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	return cfg
}

// command is how this program plays a child.
func command(args ...string) []string { return append([]string{"/proc/self/exe"}, args...) }

// uuid is what the fake library calls a card.
func uuid(index int) string { return fmt.Sprintf("GPU-00000000-0000-4000-8000-%012d", index) }

func cardsOf(t *testing.T, d *nvidia.Driver) []nvml.Card {
	t.Helper()
	list, err := d.Cards(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func sampleOf(t *testing.T, d *nvidia.Driver, uuid string) nvml.Sample {
	t.Helper()
	s, err := d.Sample(t.Context(), uuid)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func eventsOf(t *testing.T, d *nvidia.Driver) <-chan nvml.HealthEvent {
	t.Helper()
	events, err := d.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// next waits for an event.
func next(t *testing.T, events <-chan nvml.HealthEvent) nvml.HealthEvent {
	t.Helper()
	select {
	case e, open := <-events:
		if !open {
			t.Fatal("the channel of events was closed")
		}
		return e
	case <-time.After(time.Minute):
		t.Fatal("no event came")
	}
	panic("unreachable")
}

func itoa(n int) string { return strconv.Itoa(n) }
