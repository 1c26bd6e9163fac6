package api_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"haggle/internal/api"
)

// TestMain lets the test binary be a client of another user.
func TestMain(m *testing.M) {
	if socket := os.Getenv("API_TEST_CLIENT"); socket != "" {
		if _, err := api.DialAgent(socket).Status(context.Background()); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestRefusesAnotherUserEvenWhereTheFileLetsHimIn(t *testing.T) {
	requireRoot(t)
	f := &fakeAgent{}
	_, config := serveAgent(t, f)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(filepath.Dir(config.Socket))
	binary := filepath.Join(dir, "client")
	if err := os.WriteFile(binary, self, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Dir(config.Socket), config.Socket} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for uid, want := range map[uint32]int{0: 0, 65534: 1} {
		cmd := exec.CommandContext(t.Context(), binary)
		cmd.Env = append(os.Environ(), "API_TEST_CLIENT="+config.Socket)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("uid %d ends with %d, want %d", uid, got, want)
		}
	}
	if calls := f.seen(); len(calls) != 1 {
		t.Errorf("the agent was asked %d times, want once", len(calls))
	}
}

// requireRoot skips a test that must run programs as other users. Root is nothing that a package could provide.
func requireRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to be another user")
	}
}
