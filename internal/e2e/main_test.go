//go:build linux

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// programsVar names the folder of the programs under test. Where it is not set, TestMain builds them into a new one.
const programsVar = "E2E_PROGRAMS"

func TestMain(m *testing.M) {
	code, err := testAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func testAll(m *testing.M) (int, error) {
	if os.Getenv(programsVar) != "" || len(missing()) > 0 {
		return m.Run(), nil
	}
	dir, err := os.MkdirTemp("/tmp", "hgebin")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	for name, cgo := range map[string]string{
		"haggle": "CGO_ENABLED=0", "haggle-pay-lab": "CGO_ENABLED=0", "haggle-pay-hand": "CGO_ENABLED=0", "haggled": "CGO_ENABLED=1",
	} {
		build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, name), "haggle/cmd/"+name)
		build.Env = append(os.Environ(), cgo)
		if out, err := build.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	if err := os.Setenv(programsVar, dir); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// missing names what a lab needs and this machine does not have.
func missing() []string {
	var names []string
	if os.Geteuid() != 0 {
		names = append(names, "root")
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "runc"} {
		if _, err := exec.LookPath(name); err != nil && !exists("/usr/sbin/"+name) {
			names = append(names, name)
		}
	}
	return names
}

// requireLab skips a test where no lab can run, and fails it there under CI, where one must.
func requireLab(t *testing.T) {
	t.Helper()
	names := strings.Join(missing(), ", ")
	switch {
	case names == "":
	case os.Getenv("CI") == "true":
		t.Fatalf("a lab needs %s", names)
	default:
		t.Skipf("a lab needs %s", names)
	}
}

// programPath returns the path of one of the programs under test.
func programPath(name string) string { return filepath.Join(os.Getenv(programsVar), name) }
