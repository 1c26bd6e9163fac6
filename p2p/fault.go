package p2p

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// Fault is what New and LoadOrCreateKey return where the program's owner can mend what is wrong.
type Fault struct {
	Problem string // one sentence
	Hint    string // what to do about it
	Err     error  // what the system said, or nil
}

// Error returns the problem without the hint.
func (f *Fault) Error() string { return f.Problem }

// Unwrap returns what the system said.
func (f *Fault) Unwrap() error { return f.Err }

// badAddress is the fault of an address in the configuration.
func badAddress(knob, text string, err error) error {
	return &Fault{
		Problem: fmt.Sprintf("%s address %.120q cannot be used: %s", knob, text, lastReason(err)),
		Hint:    "correct `" + knob + "` in the configuration; `status` shows the addresses of a program that runs", Err: err,
	}
}

// lastReason returns the last of the reasons that an error strings together: the others repeat the address.
func lastReason(err error) string {
	parts := strings.Split(err.Error(), ": ")
	return parts[len(parts)-1]
}

// free reports an error if another program listens on a TCP port. libp2p asks the system to share ports, so without this
// two programs would take each other's calls.
func free(addr multiaddr.Multiaddr) error {
	network, address, err := manet.DialArgs(addr)
	if err != nil || !strings.HasPrefix(network, "tcp") || strings.HasSuffix(address, ":0") {
		return nil // nothing of the kind, which Listen says if it matters
	}
	l, err := net.Listen(network, address) //nolint:noctx // closed at once
	if err == nil {
		return l.Close()
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	return nil // Listen says it
}

// unheard is the error of an address that cannot be listened on.
func unheard(addr multiaddr.Multiaddr, err error) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	return &Fault{
		Problem: fmt.Sprintf("address %s is in use by another program", addr),
		Hint:    "end that program, or choose another port with `listen` in the configuration", Err: err,
	}
}
