//go:build linux && cgo

package nvidia

import (
	"errors"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	nv "github.com/NVIDIA/go-nvml/pkg/nvml"

	"haggle/nvml"
)

// library is the driver's library, loaded and started. It is safe for use by several goroutines at a time.
type library struct {
	api  nv.Interface
	path string
	may  map[string]bool // methods that may be called; never changes
}

// openLibrary loads and starts the library. Its errors are sentences for the owner of the rig.
func openLibrary(path string, deny []string) (*library, error) {
	l := &library{api: nv.New(nv.WithLibraryPath(path)), path: path}
	// Init is a function of the library like any other, so it is looked for before go-nvml calls it.
	if err := hasInit(path, deny); err != nil {
		return nil, err
	}
	if ret := l.api.Init(); ret != nv.SUCCESS {
		return nil, errors.New(refusal(path, ret))
	}
	l.may = callable(func(symbol string) bool { return l.api.Extensions().LookupSymbol(symbol) == nil }, deny)
	return l, nil
}

// hasInit reports why the library cannot be started, if it cannot.
func hasInit(path string, deny []string) error {
	lib := dl.New(path, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	if err := lib.Open(); err != nil {
		if strings.Contains(err.Error(), "No such file") {
			return fmt.Errorf("%s is not installed; it comes with the NVIDIA driver", path)
		}
		return fmt.Errorf("%s cannot be loaded: %w", path, err)
	}
	defer func() { _ = lib.Close() }() // the library stays in memory with go-nvml
	if !callable(func(symbol string) bool { return lib.Lookup(symbol) == nil }, deny)["Init"] {
		return fmt.Errorf("%s lacks nvmlInit_v2; it is not a library of the NVIDIA driver", path)
	}
	return nil
}

// refusal says in a sentence why the library did not start. It must not ask the library for the words.
func refusal(path string, ret nv.Return) string {
	switch ret {
	case nv.ERROR_DRIVER_NOT_LOADED:
		return "the NVIDIA driver is installed but its kernel module is not loaded"
	case nv.ERROR_LIB_RM_VERSION_MISMATCH:
		return "the NVIDIA kernel module has another version than " + path + ": restart the machine"
	case nv.ERROR_NO_PERMISSION:
		return "the NVIDIA driver does not let this user in"
	case nv.ERROR_GPU_NOT_FOUND:
		return "the NVIDIA driver finds no card"
	default:
		return fmt.Sprintf("%s did not start: NVML error %d", path, int32(ret))
	}
}

// probe asks one card, or the library itself, on behalf of one question, and remembers whether the card was lost.
type probe struct {
	lib  *library
	lost bool
}

// ask makes one call, if it may. Every call of go-nvml after Init goes through here: call must use the named method and no
// other, which a test over the source keeps.
func ask[T any](p *probe, method string, call func() (T, nv.Return)) nvml.Opt[T] {
	if !p.lib.may[method] {
		return nvml.None[T](nvml.NoSymbol)
	}
	v, ret := call()
	switch ret {
	case nv.SUCCESS:
		return nvml.Some(v)
	case nv.ERROR_NOT_SUPPORTED:
		return nvml.None[T](nvml.NotSupported)
	case nv.ERROR_FUNCTION_NOT_FOUND, nv.ERROR_ARGUMENT_VERSION_MISMATCH:
		return nvml.None[T](nvml.NoSymbol)
	case nv.ERROR_NO_PERMISSION:
		return nvml.None[T](nvml.NoPermission)
	case nv.ERROR_GPU_IS_LOST, nv.ERROR_GPU_NOT_FOUND:
		p.lost = true
	}
	return nvml.None[T](nvml.Failed)
}

// done fits a call without a result to ask.
func done(ret nv.Return) (struct{}, nv.Return) { return struct{}{}, ret }

// as turns a reading into another. A value that turn refuses becomes a failed reading.
func as[A, B any](o nvml.Opt[A], turn func(A) (B, bool)) nvml.Opt[B] {
	a, ok := o.Get()
	if !ok {
		return nvml.None[B](o.State)
	}
	b, ok := turn(a)
	if !ok {
		return nvml.None[B](nvml.Failed)
	}
	return nvml.Some(b)
}

// number is what the library counts in.
type number interface{ ~int | ~uint32 | ~uint64 }

// within turns a number into another type and refuses one outside lo..hi: nvml.Card and nvml.Sample would not pass with it,
// and one odd reading must not hide the whole card.
func within[B ~int | ~int64, A number](o nvml.Opt[A], lo, hi B) nvml.Opt[B] {
	return as(o, func(a A) (B, bool) {
		b := B(a)
		return b, b >= lo && b <= hi && A(b) == a
	})
}

// info describes the driver.
func (l *library) info() nvml.DriverInfo {
	p := &probe{lib: l}
	info := nvml.DriverInfo{Version: "unknown", Library: l.path}
	if v, ok := ask(p, "SystemGetDriverVersion", l.api.SystemGetDriverVersion).Get(); ok && v != "" {
		info.Version = printable(v, maxUUID)
	}
	info.CUDA = within(ask(p, "SystemGetCudaDriverVersion", l.api.SystemGetCudaDriverVersion), 1000, 99990)
	return info
}
