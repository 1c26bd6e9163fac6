//go:build linux

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haggle/internal/view"
	"haggle/market"
	"haggle/market/markettest"
)

// Backup says where a copy was asked for.
func (f *fakeRig) Backup(_ context.Context, path string) (view.Backup, error) {
	if strings.HasSuffix(path, "taken.db") {
		return view.Backup{}, market.NewError(market.CodeBadRequest, "why", "there is a file "+path+" already")
	}
	return view.Backup{Path: path, Bytes: 49_152, At: markettest.Now}, nil
}

func TestTheRunningDaemonMakesTheCopyThatIsNamed(t *testing.T) {
	s := newShell(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	s.run(0, "backup", "copy.db")
	s.wants(s.out, filepath.Join(here, "copy.db")+", 49.2 kB")
	s.run(0, "backup", "/mnt/copy.db", "--json")
	s.wants(s.out, `"path": "/mnt/copy.db"`, `"bytes": 49152`)
	s.run(2, "backup", "/mnt/taken.db")
	s.wants(s.talk, "there is a file /mnt/taken.db already")
	s.run(2, "backup")
}

func TestACopyAndARestoreWithoutADaemonSayWhatIsMissing(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HAGGLED_HOME", home)
	s := &shell{t: t}
	s.run(1, "backup", filepath.Join(home, "copy.db"))
	s.wants(s.talk, "there is nothing to copy")
	text := filepath.Join(home, "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(1, "restore", text)
	s.wants(s.talk, "is damaged")
	s.run(1, "restore", filepath.Join(home, "none.db"))
	s.wants(s.talk, "no such file")
	s.run(2, "restore")
	if _, err := os.Stat(filepath.Join(home, "haggled.db")); err == nil {
		t.Error("a database was made")
	}
}
