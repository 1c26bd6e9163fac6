//go:build linux

package rig_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"haggle/internal/assemble/rig"
	"haggle/internal/config"
	"haggle/runtime"
	"haggle/runtime/archive"
	"haggle/runtime/remote"
	"haggle/runtime/runtimetest"
)

const patience = 90 * time.Second

// TestMain lets the test binary write the logs of jobs, as the program does whose engine it runs, and puts it beside a program
// for the inside of jobs, as an installed one is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == rig.LoggerCommand {
		if err := runtime.RunLogger(os.Args[2]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(installed) != "" {
		os.Exit(m.Run())
	}
	code, err := runInstalled()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// installed is set in the environment of a test binary that has its place.
const installed = "HAGGLE_TEST_INSTALLED"

// runInstalled runs the tests again from a folder that jobs' users can reach, beside the program haggle.
func runInstalled() (code int, err error) {
	dir, err := os.MkdirTemp("/tmp", "hgrig")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return 0, err
	}
	program := filepath.Join(dir, "rig.test")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(program, data, 0o755)); err != nil {
		return 0, err
	}
	build := exec.CommandContext(context.Background(), "go", "build", "-o", filepath.Join(dir, "haggle"), "./testdata/haggle")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the program for jobs: %w: %s", err, out)
	}
	tests := exec.CommandContext(context.Background(), program, os.Args[1:]...)
	tests.Env = append(os.Environ(), installed+"=1")
	tests.Stdin, tests.Stdout, tests.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = tests.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode(), nil
	}
	return 0, err
}

// requireContainers skips a test where no container can run, and fails it there under CI, where one must.
func requireContainers(t *testing.T) {
	t.Helper()
	var missing []string
	if os.Geteuid() != 0 {
		missing = append(missing, "root")
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "runc"} {
		if _, err := exec.LookPath(name); err != nil {
			if _, err := os.Stat("/usr/sbin/" + name); err != nil {
				missing = append(missing, name)
			}
		}
	}
	switch names := strings.Join(missing, ", "); {
	case names == "":
	case os.Getenv("CI") == "true":
		t.Fatal("needs " + names)
	default:
		t.Skip("needs " + names)
	}
}

// helperHome makes a home of a helper and its configuration.
func helperHome(t *testing.T) config.Rig {
	t.Helper()
	home, err := os.MkdirTemp("/tmp", "hghelp") //nolint:usetesting // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.LoadHelper(config.Flags{
		Home: home, File: os.DevNull, Env: func(string) (string, bool) { return "", false },
		Values: map[string]string{"network": "lab-helper", "helper.user": "61001", "cards.simulated": "RTX_4090=1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestTheWholeSuiteOfTheEnginePassesThroughAHelper(t *testing.T) {
	requireContainers(t)
	cfg := helperHome(t)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	h, err := rig.NewHelper(t.Context(), rig.HelperConfig{Rig: cfg, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if err := rig.PurgeHelper(ctx, cfg, log); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(cfg.Paths.Home + "/*"); len(left) > 0 {
			t.Errorf("the helper left %q", left)
		}
	})
	if _, err := rig.NewHelper(t.Context(), rig.HelperConfig{Rig: cfg}); !errors.Is(err, rig.ErrHelperRuns) {
		t.Errorf("a second helper: %v", err)
	}
	client := remote.Dial(t.Context(), cfg.Paths.Helper)
	t.Cleanup(func() { _ = client.Close() })
	ready, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := client.Ready(ready); err != nil {
		t.Fatal(err)
	}
	runtimetest.Conformance(t, runtimetest.Subject{Runtime: client, Program: probeFile(t), Patience: patience})
	if _, err := client.SetPowerLimit(ready, "GPU-1", 0); !errors.Is(err, runtime.ErrUnsupported) {
		t.Errorf("the power of a simulated card: %v", err)
	}
}

// probeFile builds the suite's program.
func probeFile(t *testing.T) archive.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "probe")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "haggle/runtime/runtimetest/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build probe: %v\n%s", err, out)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return archive.File{Size: info.Size(), Open: func() (io.ReadCloser, error) { return os.Open(path) }}
}

func TestAHelperWorksOnlyWhereNobodyButRootCanPutThings(t *testing.T) {
	requireContainers(t)
	for name, spoil := range map[string]func(cfg config.Rig) error{
		"a home of another user":          func(cfg config.Rig) error { return os.Chown(cfg.Paths.Home, 61001, 61001) },
		"a home that others may write to": func(cfg config.Rig) error { return os.Chmod(cfg.Paths.Home, 0o777) },
		"a run folder of another user": func(cfg config.Rig) error {
			return errors.Join(os.Mkdir(cfg.Paths.Run, 0o700), os.Chown(cfg.Paths.Run, 61001, 61001))
		},
		"a run folder that is a link": func(cfg config.Rig) error { return os.Symlink("/tmp", cfg.Paths.Run) },
		"a configuration that others may write": func(cfg config.Rig) error {
			return errors.Join(os.WriteFile(cfg.Paths.Config, nil, 0o600), os.Chmod(cfg.Paths.Config, 0o666))
		},
		"a configuration that is a link": func(cfg config.Rig) error { return os.Symlink("/etc/passwd", cfg.Paths.Config) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := helperHome(t)
			if err := spoil(cfg); err != nil {
				t.Fatal(err)
			}
			if _, err := rig.NewHelper(t.Context(), rig.HelperConfig{Rig: cfg}); !errors.Is(err, rig.ErrUnsafe) {
				t.Errorf("got %v", err)
			}
			said, ok := rig.Explain(rig.ErrUnsafe)
			if !ok || said.Hint == "" {
				t.Errorf("nothing is said to people: %+v", said)
			}
		})
	}
	cfg := helperHome(t)
	cfg.Helper.User = "nobody-of-this-name"
	if _, err := rig.NewHelper(t.Context(), rig.HelperConfig{Rig: cfg}); err == nil {
		t.Error("a helper for nobody")
	}
}
