//go:build linux

package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestWithoutItsHomeALabIsNeverTalkedTo(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	dir := shortDir(t)
	env := []string{"HOME=" + dir}
	for _, name := range []string{"CONFIG_HOME", "DATA_HOME", "STATE_HOME", "CACHE_HOME", "RUNTIME_DIR"} {
		env = append(env, "XDG_"+name+"="+filepath.Join(dir, strings.ToLower(name)))
	}
	if err := os.Mkdir(filepath.Join(dir, "runtime_dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	// A test reaches out to nobody and lets nobody in.
	if err := os.MkdirAll(filepath.Join(dir, "config_home/haggle"), 0o700); err != nil {
		t.Fatal(err)
	}
	knobs := []byte("listen = [\"/ip4/127.0.0.1/tcp/0\"]\n")
	if err := os.WriteFile(filepath.Join(dir, "config_home/haggle/config.toml"), knobs, 0o600); err != nil {
		t.Fatal(err)
	}
	stopAgent(t, env)
	for _, args := range [][]string{{"offers"}, order("bid", nil)} {
		p := start(t, env, "haggle", args...).wants(5)
		if said := p.err.String(); !strings.Contains(said, "no peer of network main answers (hint: ") {
			t.Errorf("%s says %q", p.line, said)
		}
		if p.out.String() != "" {
			t.Errorf("%s lists %s", p.line, p.out.String())
		}
	}
	l.wantUntouched()
}

// stopAgent ends the agent of an environment with the test.
func stopAgent(t *testing.T, env []string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		stop := exec.CommandContext(ctx, programPath("haggle"), "agent", "stop", "--force")
		stop.Env = append(cleanEnv(), env...)
		if out, err := stop.CombinedOutput(); err != nil {
			t.Errorf("agent stop: %v\n%s", err, out)
		}
	})
}
