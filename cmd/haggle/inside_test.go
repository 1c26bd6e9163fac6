package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"haggle/internal/view"
)

func TestATildeAtTheBeginningOfALineIsForHaggle(t *testing.T) {
	for name, c := range map[string]struct {
		typed, passed string
		ended, helped bool
	}{
		"leaves":                        {typed: "~.ls", ended: true},
		"leaves after a line":           {typed: "ls\r~.x", passed: "ls\r", ended: true},
		"is passed on when doubled":     {typed: "~~.", passed: "~."},
		"is passed on within a line":    {typed: "cd ~.\n", passed: "cd ~.\n"},
		"is passed on before a letter":  {typed: "~/bin/x\r", passed: "~/bin/x\r"},
		"tells what there is":           {typed: "~?ls", passed: "ls", helped: true},
		"is kept back until it is seen": {typed: "~", passed: ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(c.typed), iotest.OneByteReader(strings.NewReader(c.typed))} {
				ended, helped := false, false
				e := &escapes{in: in, begun: true, end: func() { ended = true }, help: func() { helped = true }}
				got, err := io.ReadAll(e)
				if err != nil || string(got) != c.passed || ended != c.ended || helped != c.helped {
					t.Errorf("passed %q, ended %v, helped %v, %v", got, ended, helped, err)
				}
			}
		})
	}
}

func FuzzWhatHasNoTildePassesUnchanged(f *testing.F) {
	f.Add([]byte("ls\r\ncd x\n"))
	f.Fuzz(func(t *testing.T, typed []byte) {
		typed = bytes.ReplaceAll(typed, []byte("~"), nil)
		e := &escapes{in: bytes.NewReader(typed), begun: true}
		got, err := io.ReadAll(e)
		if err != nil || !bytes.Equal(got, typed) {
			t.Errorf("%q became %q, %v", typed, got, err)
		}
	})
}

func TestTheLinkInALogLeadsToTheJobsOwnPort(t *testing.T) {
	for name, c := range map[string]struct{ log, path string }{
		"Jupyter's, with its token": {
			log: "    To access the server, open this file in a browser:\n        http://b4:8888/lab?token=abc\n     or http://127.0.0.1:8888/lab?token=abc\n", path: "/lab?token=abc",
		},
		"TensorBoard's":                 {log: "TensorBoard 2.19 at http://localhost:8888/ (Press CTRL+C to quit)", path: "/"},
		"one without a path":            {log: "listening on http://0.0.0.0:8888.", path: "/"},
		"a token before a plain one":    {log: "http://x:8888/?token=1 and http://x:8888/tree", path: "/?token=1"},
		"another port's is none":        {log: "http://127.0.0.1:88881/a http://127.0.0.1:6006/b"},
		"control characters end it":     {log: "http://127.0.0.1:8888/a\x1b[31mb", path: "/a"},
		"a link without end is no link": {log: "http://127.0.0.1:8888/" + strings.Repeat("a", 1<<12)},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if u := linkIn([]byte(c.log), 8888); u != nil {
				got = u.RequestURI()
			}
			if got != c.path {
				t.Errorf("found %q, want %q", got, c.path)
			}
		})
	}
}

func TestOneSideOfACopyIsInAJob(t *testing.T) {
	for text, want := range map[string]struct {
		lease, path string
		inJob       bool
	}{
		"cats:out": {"cats", "out", true}, "cats:": {"cats", "", true}, "cats:/etc/x:y": {"cats", "/etc/x:y", true},
		"./a:b": {"", "./a:b", false}, "/a:b": {"", "/a:b", false}, ":x": {"", ":x", false}, "out": {"", "out", false},
	} {
		if lease, path, inJob := splitPlace(text); lease != want.lease && inJob || path != want.path || inJob != want.inJob {
			t.Errorf("%q is %q, %q, %v", text, lease, path, inJob)
		}
	}
}

func TestTheUsersFileIsReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real"), filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip("there are no symbolic links here")
	}
	if err := swapFile(link, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "new" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := swapFile(link, []byte("new"), 0o600); err == nil {
		t.Error("a link that leads nowhere was followed")
	}
	if err := swapFile(dir, []byte("new"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".haggle-*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestAnOlderWordChangesNothing(t *testing.T) {
	at := func(attempt int, state string) view.Lease { return view.Lease{Attempt: attempt, State: state} }
	for _, c := range []struct {
		says, now view.Lease
		older     bool
	}{
		{at(0, "starting"), at(0, "running"), true},
		{at(0, "running"), at(0, "running"), false},
		{at(0, "paused"), at(0, "stopping"), false},
		{at(1, "preparing"), at(0, "paused"), false},
		{at(0, "ended"), at(1, "preparing"), true},
		{at(0, "paused"), at(0, "preparing"), false},
	} {
		if got := older(c.says, c.now); got != c.older {
			t.Errorf("%v after %v is older: %v", c.says.State, c.now.State, got)
		}
	}
}
