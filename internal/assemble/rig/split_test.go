//go:build linux

package rig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haggle/internal/config"
)

func TestWhoStartsTheContainersIsSaid(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: what is said to another user is another thing")
	}
	nobody := filepath.Join(t.TempDir(), "helper.sock")
	for name, c := range map[string]struct {
		cfg   config.Rig
		level Level
		says  string
		warns bool
	}{
		"all of an installed rig as root":  {config.Rig{}, LevelNote, "all of haggled", true},
		"a trial in a home of its own":     {config.Rig{Paths: config.Paths{Home: "/srv/rig"}}, LevelGood, "yes", false},
		"a helper that does not answer":    {config.Rig{Helper: config.Helper{Socket: nobody}, Paths: config.Paths{Home: "/srv/rig"}}, LevelBad, nobody, false},
		"a helper that nobody asked for":   {config.Rig{Paths: config.Paths{Home: "/srv/rig", Helper: nobody}}, LevelGood, "yes", false},
		"a root daemon that has a helper":  {config.Rig{Helper: config.Helper{Socket: nobody}}, LevelBad, nobody, true},
		"root finds the helper's own file": {config.Rig{Paths: config.Paths{Helper: "/etc/passwd"}}, LevelNote, "all of haggled", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := privilege(t.Context(), c.cfg)
			if f.Level != c.level || !strings.Contains(f.Found, c.says) || (f.Level != LevelGood) != (f.Fix != "") {
				t.Errorf("doctor says %+v", f)
			}
			if w := warnings(c.cfg); (len(w) > 0) != c.warns {
				t.Errorf("status warns %q", w)
			}
		})
	}
}
