//go:build linux && cgo

package nvidia_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"haggle/nvml/nvidia"
)

func TestTheChildKeepsToTheProtocol(t *testing.T) {
	const first = `{"id":1,"op":"open","open":{"version":1,"library":"libnvidia-ml.so.404","beat_ns":3600000000000,"grace_ns":1}}`
	opened := framed(first)
	for name, x := range map[string]struct {
		asks string
		fits bool
		says []string
	}{
		"nothing":                  {"", true, nil},
		"garbage":                  {"\xff\xff\xff\xff", false, nil},
		"half a frame":             {opened[:9], false, nil},
		"a question before open":   {framed(`{"id":1,"op":"list"}`), false, nil},
		"open without its content": {framed(`{"id":1,"op":"open"}`), false, nil},
		"another version":          {framed(strings.Replace(first, `"version":1`, `"version":2`, 1)), false, nil},
		"an honest talk": {
			opened + framed(`{"id":2,"op":"list"}`) + framed(`{"id":3,"op":"sample","uuid":"GPU-1"}`) +
				framed(`{"id":4,"op":"reset","uuid":"GPU-1"}`), true,
			[]string{
				`{"id":1,"code":"no_driver","text":"libnvidia-ml.so.404 is not installed; it comes with the NVIDIA driver"}`,
				`{"id":2,"list":{"uuids":[],"silent":0}}`, `{"id":3,"code":"no_card"}`,
				`{"id":4,"code":"failed","text":"unknown question"}`,
			},
		},
		"garbage after open": {
			opened + framed("{}{}"), false,
			[]string{`{"id":1,"code":"no_driver","text":"libnvidia-ml.so.404 is not installed; it comes with the NVIDIA driver"}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := nvidia.RunChild(strings.NewReader(x.asks), &out); (err == nil) != x.fits {
				t.Errorf("the child ends with %v", err)
			}
			want := ""
			for _, s := range x.says {
				want += framed(s)
			}
			if got := out.String(); got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
		})
	}
	broken, w := io.Pipe()
	_ = broken.Close()
	// The parent still asks but does not listen.
	asks, never := io.Pipe()
	defer func() { _ = never.Close() }()
	if err := nvidia.RunChild(io.MultiReader(strings.NewReader(opened), asks), w); err == nil {
		t.Error("a child that nobody listens to goes on")
	}
}
