// Command bare is libp2p and nothing else, for bench to measure beside haggle.
//
// Without arguments it is the floor of memory: a host with TCP and QUIC on loopback and a DHT server. It says "ready" and runs
// until its standard input ends. "bare listen" and "bare dial ADDRESS" copy standard input over one stream on TCP to standard
// output, and "bare echo" sends back what comes on a stream; the two that listen say their address on standard error.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/libp2p/go-libp2p"
	dht "github.com/libp2p/go-libp2p-kad-dht"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 0:
		return idle()
	case len(args) == 1 && args[0] == "listen":
		return listen()
	case len(args) == 2 && args[0] == "dial":
		return dial(args[1])
	case len(args) == 1 && args[0] == "echo":
		return echo()
	}
	return errors.New("usage: bare [listen | dial ADDRESS | echo]")
}

func idle() error {
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"))
	if err != nil {
		return err
	}
	table, err := dht.New(h, dht.Mode(dht.ModeServer), dht.ProtocolPrefix("/bare"))
	if err != nil {
		return errors.Join(err, h.Close())
	}
	fmt.Println("ready")
	untilInputEnds()
	return errors.Join(table.Close(), h.Close())
}

// untilInputEnds returns when standard input ends, or says that the measurement is over.
func untilInputEnds() {
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}
