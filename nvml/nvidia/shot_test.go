//go:build linux && cgo

package nvidia_test

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"haggle/nvml"
	"haggle/nvml/nvidia"
)

func TestAChildOfOneQuestionKeepsToTheProtocol(t *testing.T) {
	const unknown = `{"code":"failed","text":"unknown question"}`
	for name, x := range map[string]struct{ asks, says string }{
		"specs without a driver": {
			`{"id":1,"op":"specs","specs":{"version":1,"library":"libnvidia-ml.so.404","driver_root":"","dev_root":""}}`,
			`{"code":"no_driver","text":"libnvidia-ml.so.404 is not installed; it comes with the NVIDIA driver"}`,
		},
		"a scrub without CUDA": {
			`{"id":1,"op":"scrub","uuid":"GPU-1","scrub":{"version":1,"library":"libcuda.so.404","most":1}}`,
			`{"code":"unsupported","text":"libcuda.so.404 cannot be loaded; it comes with the NVIDIA driver"}`,
		},
		"another version":        {`{"id":1,"op":"scrub","scrub":{"version":2,"library":"x","most":1}}`, unknown},
		"specs without an order": {`{"id":1,"op":"specs"}`, unknown},
		"a scrub with the order of specs": {
			`{"id":1,"op":"scrub","specs":{"version":1,"library":"x","driver_root":"","dev_root":""}}`, unknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			stays, end := io.Pipe()
			defer func() { _ = end.Close() }()
			var out bytes.Buffer
			if err := nvidia.RunChild(io.MultiReader(strings.NewReader(framed(x.asks)), stays), &out); err != nil {
				t.Errorf("the child ends with %v", err)
			}
			if got, want := out.String(), framed(x.says); got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
		})
	}
}

func TestAChildOfOneQuestionEndsWithItsParent(t *testing.T) {
	s := newSilicon(t, "full", uuid(0), 32*mib)
	s.set("hang.cuInit", "600000")
	defer s.set("hang.cuInit", "")
	ask := framed(`{"id":1,"op":"scrub","uuid":"` + uuid(0) + `","scrub":{"version":1,"library":"` + s.library + `","most":33554432}}`)
	if err := nvidia.RunChild(strings.NewReader(ask), io.Discard); err == nil {
		t.Error("nobody waits, and the child ends well")
	}
}

func TestLiesOfAChildOfOneQuestionAreRefused(t *testing.T) {
	device := func(name string) string {
		return `{"specs":[{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","devices":[{"name":"` + name + `","containerEdits":{}}]}]}`
	}
	for name, says := range map[string]string{
		"a huge frame":            "\xff\xff\xff\xff",
		"no JSON":                 framed("{"),
		"an unknown field":        framed(`{"password":"x"}`),
		"less than no memory":     framed(`{"bytes":-1}`),
		"more memory than it has": framed(`{"bytes":99999999999999}`),
		"no answer":               framed(`{}`),
		"a spec that is none":     framed(`{"specs":[7]}`),
		"many specs":              framed(`{"specs":[` + strings.Repeat("7,", 16) + `7]}`),
		"another kind":            framed(strings.Replace(device("GPU-1"), "nvidia.com", "example.com", 1)),
		"a device by its number":  framed(device("0")),
		"a device by a path":      framed(device("GPU-../../x")),
		"a spec of no device":     framed(`{"specs":[{"kind":"nvidia.com/gpu","devices":[]}]}`),
		"a code that means no":    framed(`{"code":"failed","text":"\u001b[2J"}`),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "full", "A100")
			d := r.open(nvidia.Config{Command: command(liarArg, strconv.Quote(says))})
			if n, err := d.Scrub(t.Context(), uuid(0)); err == nil || n != 0 || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("scrub: %d, %v", n, err)
			}
			if specs, err := d.Specs(t.Context()); err == nil {
				t.Errorf("specs: %q", specs)
			}
			sampleOf(t, d, uuid(0))
		})
	}
	liar := command(liarArg, strconv.Quote(framed(`{"code":"no_driver","text":"gone"}`)))
	d := newRig(t, "full", "A100").open(nvidia.Config{Command: liar})
	if _, err := d.Specs(t.Context()); !errors.Is(err, nvml.ErrNoDriver) {
		t.Errorf("specs: %v, want ErrNoDriver", err)
	}
}
