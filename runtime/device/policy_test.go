//go:build linux

package device_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haggle/runtime/device"
)

// hostile is one file of testdata/hostile.
type hostile struct {
	Want, Reason string // the rule and a part of the reason
	Spec         json.RawMessage
}

func readHostile(t testing.TB) map[string]hostile {
	t.Helper()
	files, err := filepath.Glob("testdata/hostile/*.json")
	if err != nil || len(files) < 35 {
		t.Fatalf("%d hostile descriptions: %v", len(files), err)
	}
	all := make(map[string]hostile)
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var h hostile
		if err := json.Unmarshal(raw, &h); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".json")] = h
	}
	return all
}

func TestEveryHostileDescriptionIsRefusedWithTheReason(t *testing.T) {
	for name, h := range readHostile(t) {
		t.Run(name, func(t *testing.T) {
			problems := device.Check(h.Spec)
			if !slices.ContainsFunc(problems, func(p device.Problem) bool {
				return p.Rule == h.Want && strings.Contains(p.Reason, h.Reason)
			}) {
				t.Errorf("want %s: …%s…, got %v", h.Want, h.Reason, problems)
			}
			for _, p := range problems {
				if strings.ContainsFunc(p.String(), func(r rune) bool { return r < ' ' }) {
					t.Errorf("control characters in %q", p)
				}
			}
		})
	}
}

func TestDescriptionsThatAreNoneAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ raw, rule string }{
		"nothing":               {"", "format"},
		"null":                  {"null", "format"},
		"a page of the web":     {"<html>", "format"},
		"half a description":    {`{"cdiVersion": "0.6.0", "kind`, "format"},
		"a key twice":           {`{"kind": "a.b/c", "kind": "nvidia.com/gpu"}`, "format"},
		"two megabytes":         {strings.Repeat(" ", 2<<20), "bounds"},
		"a bomb of references":  {bomb(), "format"},
		"thousands of devices":  {`{"devices": [` + strings.Repeat(`{"name": "x"},`, 600) + `{"name": "x"}]}`, "bounds"},
		"a tower of lists":      {strings.Repeat("[", 20_000), "format"},
		"a very long name":      {`{"cdiVersion": "0.6.0", "kind": "` + strings.Repeat("a", 5000) + `.b/c", "devices": []}`, "kind"},
		"a very long parameter": {`{"cdiVersion": "0.6.0", "kind": "a.b/c", "containerEdits": {"env": ["A=` + strings.Repeat("a", 5000) + `"]}}`, "bounds"},
	} {
		t.Run(name, func(t *testing.T) {
			problems := device.Check([]byte(c.raw))
			if !slices.ContainsFunc(problems, func(p device.Problem) bool { return p.Rule == c.rule && len(p.Reason) < 1000 }) {
				t.Errorf("want %s, got %.300v", c.rule, problems)
			}
		})
	}
}

// bomb is a YAML document of a few hundred bytes that stands for a billion strings.
func bomb() string {
	var b strings.Builder
	b.WriteString("annotations:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		at := string(rune('0' + i))
		next := string(rune('1' + i))
		b.WriteString("  a" + next + ": &a" + next + " [" + strings.Repeat("*a"+at+", ", 9) + "*a" + at + "]\n")
	}
	return b.String()
}

func TestDescriptionsOfVendorsPass(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, ".golden") {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if problems := device.Check(raw); len(problems) > 0 {
				t.Error(problems)
			}
		})
	}
}
