//go:build linux

package device

import (
	"context"
	"io/fs"
)

// Fake is a machine of a test: what is not in it does not exist.
type Fake struct {
	Nodes    map[string]FakeNode
	Files    map[string]string // to what they really are; "" for themselves
	Folders  map[string]bool
	Private  map[string]bool   // files that not everybody may read
	Sonames  map[string]string // of libraries for this processor
	Programs map[string]error
	Buses    map[string]string
}

// FakeNode is a character device.
type FakeNode struct {
	Major, Minor uint32
	Mode         fs.FileMode
	Group        uint32
	Err          error
}

// What a FakeNode.Err can be.
var (
	ErrLink   = errLink
	ErrNoChar = errNoChar
)

// NewOn is New on a machine of a test.
func NewOn(cfg Config, f Fake) (*Devices, error) { return newOn(cfg, f) }

func (f Fake) node(p string) (node, error) {
	n, ok := f.Nodes[p]
	if !ok {
		return node{}, fs.ErrNotExist
	}
	return node{n.Major, n.Minor, n.Mode, n.Group}, n.Err
}

func (f Fake) source(p string) (source, error) {
	to, ok := f.Files[p]
	if !ok {
		return source{}, fs.ErrNotExist
	}
	if to == "" {
		to = p
	}
	mode := fs.FileMode(0o644)
	if f.Private[p] {
		mode = 0o600
	}
	return source{to, f.Folders[p], mode}, nil
}

func (f Fake) library(p string) (string, bool) {
	name, ok := f.Sonames[p]
	return name, ok
}

func (f Fake) program(p string) error {
	err, ok := f.Programs[p]
	if !ok {
		return fs.ErrNotExist
	}
	return err
}

func (f Fake) bus(p string) (string, bool) {
	bus, ok := f.Buses[p]
	return bus, ok
}

// Willing is a machine that has everything that is asked for.
type Willing struct{}

// NewOnWilling is New on such a machine.
func NewOnWilling(cfg Config) (*Devices, error) { return newOn(cfg, Willing{}) }

func (Willing) node(string) (node, error)       { return node{195, 0, 0o666, 0}, nil }
func (Willing) source(p string) (source, error) { return source{p, false, 0o644}, nil }
func (Willing) library(string) (string, bool)   { return "libx.so.1", true }
func (Willing) program(string) error            { return nil }
func (Willing) bus(string) (string, bool)       { return "0000:01:00.0", true }

// CheckProgram and Soname look at this machine.
func CheckProgram(p string) error { return host{}.program(p) }

// Soname is the name of a shared library, and whether programs here can load it.
func Soname(p string) (string, bool) { return host{}.library(p) }

// Fixed is a driver that always states the same.
func Fixed(raw ...[]byte) func(context.Context) ([][]byte, error) {
	return func(context.Context) ([][]byte, error) { return raw, nil }
}
