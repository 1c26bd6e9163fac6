//go:build linux && cgo

package nvidia

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/ebitengine/purego"
)

// Results of CUDA that mean something to a caller.
const (
	cudaOK       = 0
	cudaNoMemory = 2
	cudaNoDevice = 100
	cudaBadIndex = 101
)

// noCard is the error of a card that CUDA does not see.
func noCard() error { return &denial{codeNoCard, "CUDA finds no such card"} }

// cuda is the driver's library for computing. It must only be loaded into a process that may die. Its methods belong to one
// thread.
type cuda struct {
	start   func(flags uint32) int32
	count   func(n *int32) int32
	device  func(dev *int32, index int32) int32
	uuid    func(id *[16]byte, dev int32) int32
	retain  func(ctx *uintptr, dev int32) int32
	release func(dev int32) int32
	enter   func(ctx uintptr) int32
	memory  func(free, total *uintptr) int32
	alloc   func(at *uint64, bytes uintptr) int32
	free    func(at uint64) int32
	fill    func(at uint64, word uint32, words uintptr) int32
	read    func(to *byte, at uint64, bytes uintptr) int32
	finish  func() int32
}

// loadCUDA loads the library and finds its functions.
func loadCUDA(path string) (*cuda, error) {
	lib, err := purego.Dlopen(path, purego.RTLD_LAZY|purego.RTLD_LOCAL)
	if err != nil {
		return nil, unsupported("%s cannot be loaded; it comes with the NVIDIA driver", path)
	}
	c := new(cuda)
	for _, f := range []struct {
		name string
		to   any
	}{
		{"cuInit", &c.start},
		{"cuDeviceGetCount", &c.count},
		{"cuDeviceGet", &c.device},
		{"cuDeviceGetUuid_v2", &c.uuid}, // the older one gives a slice the UUID of its card
		{"cuDevicePrimaryCtxRetain", &c.retain},
		{"cuDevicePrimaryCtxRelease_v2", &c.release},
		{"cuCtxSetCurrent", &c.enter},
		{"cuMemGetInfo_v2", &c.memory},
		{"cuMemAlloc_v2", &c.alloc},
		{"cuMemFree_v2", &c.free},
		{"cuMemsetD32_v2", &c.fill},
		{"cuMemcpyDtoH_v2", &c.read},
		{"cuCtxSynchronize", &c.finish},
	} {
		at, err := purego.Dlsym(lib, f.name)
		if err != nil {
			return nil, unsupported("%s lacks the function %s", path, f.name)
		}
		purego.RegisterFunc(f.to, at)
	}
	return c, nil
}

// cudaError is the error of a call that was to do something, or nil.
func cudaError(what string, result int32) error {
	switch result {
	case cudaOK:
		return nil
	case cudaNoMemory:
		return fmt.Errorf("%s: the card has no memory free", what)
	case cudaNoDevice, cudaBadIndex:
		return fmt.Errorf("%s: %w", what, noCard())
	default:
		return fmt.Errorf("%s: CUDA error %d", what, result)
	}
}

// find returns the device with a UUID.
func (c *cuda) find(uuid string) (int32, error) {
	want, err := uuidBytes(uuid)
	if err != nil {
		return 0, err
	}
	if err := cudaError("start CUDA", c.start(0)); err != nil {
		return 0, err
	}
	var n int32
	if err := cudaError("count cards", c.count(&n)); err != nil {
		return 0, err
	}
	for i := range min(n, maxCards) {
		var dev int32
		var id [16]byte
		if c.device(&dev, i) == cudaOK && c.uuid(&id, dev) == cudaOK && id == want {
			return dev, nil
		}
	}
	return 0, noCard()
}

// uuidBytes reads the UUID behind the prefix of a card or a slice.
func uuidBytes(uuid string) (id [16]byte, err error) {
	_, digits, _ := strings.Cut(uuid, "-")
	b, err := hex.DecodeString(strings.ReplaceAll(digits, "-", ""))
	if err != nil || len(b) != len(id) || !isDevice(uuid) {
		return id, fmt.Errorf("%.96q is no UUID of a card", uuid)
	}
	return [16]byte(b), nil
}
