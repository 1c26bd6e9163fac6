package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/internal/door"
	"haggle/market/markettest"
)

// TestMain makes the test binary also the program under test, with a fake agent in place of the real one. The commands start
// it, as they would the real one, as a process of its own, and talk with it through the real API.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"haggle":      func() { os.Exit(start(os.Args, fakeWiring())) },
		"haggle-door": func() { os.Exit(door.Main(context.Background(), os.Args[1:], os.Stdout)) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			home, err := os.MkdirTemp("/tmp", "hg") //nolint:usetesting // a socket's path must be short
			if err != nil {
				return err
			}
			e.Setenv("HAGGLE_HOME", home)
			e.Setenv("TZ", "UTC")
			e.Setenv("LEASE", leaseID()[:8])
			e.Defer(func() { endAgent(t, home) })
			evidence := markettest.Evidence().Encode()
			files := map[string][]byte{
				"good.evidence": evidence, "open.evidence": unfinished(), "cut.evidence": evidence[:len(evidence)/2], "forked.evidence": forked(),
				"paid.evidence": markettest.Paid().Encode(), "redacted.evidence": markettest.Paid().Redact().Encode(), "refused.evidence": refused(),
			}
			for name, data := range files {
				if err := os.WriteFile(filepath.Join(e.WorkDir, name), data, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"flip": flip, "code": code, "waitfor": waitFor, "serve": serve, "fetch": fetch, "rig": rig},
	})
}

// endAgent stops what a script has started, and removes its home.
func endAgent(t *testing.T, home string) {
	defer os.RemoveAll(home)
	paths, err := config.AgentPaths(home)
	if err != nil {
		t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := api.DialAgent(paths.Socket).Shutdown(ctx, true); err != nil {
		return // none was started
	}
	for answers(ctx, paths.Socket) {
		if ctx.Err() != nil {
			t.Errorf("the agent of %s does not end", home)
			return
		}
	}
}
