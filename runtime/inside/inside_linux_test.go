package inside_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"haggle/runtime/inside"
)

// asMain makes the test binary the program that it tests.
const asMain = "INSIDE_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		os.Exit(inside.Main(os.Args[1:], os.Stdout))
	}
	os.Exit(m.Run())
}

// run starts the program as a user who may do nothing: as root it would attack this machine.
func run(t *testing.T, args ...string) ([]inside.Result, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = []string{asMain + "=1"}
	cmd.Dir = "/"
	if os.Geteuid() == 0 {
		cmd.Path = copyFor(t, os.Args[0])
		cmd.SysProcAttr = nobody()
	}
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	var all []inside.Result
	for line := range bytes.Lines(out) {
		var r inside.Result
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, r)
	}
	return all, cmd.ProcessState.ExitCode()
}

func TestTheCheckTellsOfEveryWallWithinTwoSeconds(t *testing.T) {
	start := time.Now()
	all, code := run(t, "check", "--lan", "127.0.0.1:1", "--rig=127.0.0.1:1")
	if took := time.Since(start); took > 4*time.Second { // with the start of a test binary on a busy machine
		t.Errorf("it took %s", took)
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Name)
		if r.Found == "" {
			t.Errorf("%s does not say what was found", r.Name)
		}
	}
	want := []string{
		"user-namespace", "seccomp", "capabilities", "no-new-privileges", "mknod", "mount", "masked-paths", "write-proc", "device-open",
		"raw-socket", "metadata", "ipv6", "ptrace-outside", "keyctl", "bpf", "lan", "rig", "pids-bounded",
	}
	if code != 0 || !slices.Equal(names, want) {
		t.Errorf("code %d, names %q", code, names)
	}
}

func TestEachAttackEndsByItselfAndTellsWhatItFound(t *testing.T) {
	all, code := run(t, "attack", "look=/,/none", "hostname", "fork-bomb=20", "scan=127.0.0.1,3,0", "open-files=10")
	if code != 0 || len(all) != 5 {
		t.Fatalf("code %d, %+v", code, all)
	}
	for i, want := range []struct {
		name  string
		holds bool
		count int64
	}{{"look=/,/none", false, 0}, {"hostname", true, 0}, {"fork-bomb=20", false, 20}, {"scan=127.0.0.1,3,0", false, 3}, {"open-files=10", false, 10}} {
		if r := all[i]; r.Name != want.name || r.Holds != want.holds || r.Count != want.count || r.Found == "" {
			t.Errorf("got %+v, want %+v", r, want)
		}
	}
}

func TestWrongWordsAreSaidToBeWrong(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"attack"}, {"attack", "no-such"}, {"check", "--lan"}, {"check", "--far", "x"}, {"check", "--pids", "0"}} {
		var out strings.Builder
		if code := inside.Main(args, &out); code != 2 || out.Len() == 0 {
			t.Errorf("%q: code %d, %q", args, code, out.String())
		}
	}
}

// copyFor puts the program where everyone may read it.
func copyFor(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp("/tmp", "hginside") // a test's own folder is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(f.Name()) })
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := f.Chmod(0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

func nobody() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}
