// Command bare is the floor of memory that bench measures beside haggled: a libp2p host with TCP and QUIC on loopback and a
// DHT server, and nothing else. It says "ready" and runs until its standard input ends.
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
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run() error {
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"))
	if err != nil {
		return err
	}
	table, err := dht.New(h, dht.Mode(dht.ModeServer), dht.ProtocolPrefix("/bare"))
	if err != nil {
		return errors.Join(err, h.Close())
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // it ends, or says that the measurement is over
	return errors.Join(table.Close(), h.Close())
}
