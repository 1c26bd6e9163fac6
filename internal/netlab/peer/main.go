// Command peer is a node of our network and nothing else: netlab's tests run it on their hosts. It takes commands as lines of JSON
// on its input, answers them as lines on its output, and ends with its input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"haggle/internal/netlab"
	"haggle/market"
	"haggle/p2p"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

// run is the peer until its input or ctx ends.
func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	cfg, err := configure(args)
	if err != nil {
		return err
	}
	node, err := p2p.New(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var tasks sync.WaitGroup
	var failed error
	tasks.Go(func() { failed = node.Run(ctx) })
	p := &peer{node: node, out: json.NewEncoder(out)}
	p.answer(netlab.Answer{Status: p.status()})
	go func() {
		<-ctx.Done()
		if c, ok := in.(io.Closer); ok {
			_ = c.Close() // it ends the reading below
		}
	}()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var q netlab.Question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return fmt.Errorf("a command that is no JSON: %w", err)
		}
		tasks.Go(func() { p.do(ctx, q) })
	}
	cancel()
	tasks.Wait()
	return failed
}

// configure reads the node's configuration from the command line.
func configure(args []string) (p2p.Config, error) {
	flags := flag.NewFlagSet("peer", flag.ContinueOnError)
	name := flags.String("name", "", "what the key is made from, and the name of the one offer")
	network := flags.String("network", "netlab", "the network")
	mode := flags.String("mode", "auto", "client, server or auto")
	bootstrap := flags.String("bootstrap", "", "addresses, with commas between them")
	listen := flags.String("listen", "", "addresses, with commas between them")
	reach := flags.String("reach", "{}", "p2p.Reach as JSON")
	bulk := flags.String("bulk-for", "", "keys for which it is a bulk relay, with commas between them")
	sources := flags.String("sources", "{}", "p2p.Sources as JSON")
	level := flags.String("log", "info", "the least that is logged")
	if err := flags.Parse(args); err != nil {
		return p2p.Config{}, err
	}
	var least slog.Level
	if err := least.UnmarshalText([]byte(*level)); err != nil {
		return p2p.Config{}, err
	}
	cfg := p2p.Config{
		Key: netlab.PeerKey(*name), Network: *network, Agent: "netlab/" + *name,
		Bootstrap: split(*bootstrap), Listen: split(*listen), Handlers: handlers(*name),
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: least})),
	}
	switch *mode {
	case "client":
		cfg.Mode = p2p.ModeClient
	case "server":
		cfg.Mode = p2p.ModeServer
	case "auto":
		cfg.Mode = p2p.ModeAuto
	default:
		return p2p.Config{}, fmt.Errorf("there is no mode %q", *mode)
	}
	if *bulk != "" {
		keys := split(*bulk)
		cfg.Reach.Relay = p2p.RelayBulk
		cfg.Reach.BulkFor = func(k market.Key) bool { return slices.Contains(keys, k.String()) }
	}
	return cfg, errors.Join(json.Unmarshal([]byte(*reach), &cfg.Reach), json.Unmarshal([]byte(*sources), &cfg.Sources))
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// peer answers commands, each in a goroutine of its own.
type peer struct {
	node *p2p.Node

	mu  sync.Mutex
	out *json.Encoder
}

func (p *peer) answer(a netlab.Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.out.Encode(a) // nobody reads any more: the input ends too
}

func (p *peer) status() netlab.Status {
	h := p.node.Health()
	s := netlab.Status{Key: p.node.ID().String(), Ready: h.Ready, Table: h.TableSize, Why: h.Reason, Addrs: p.node.Addrs()}
	for _, c := range p.node.Peers() {
		s.Peers = append(s.Peers, netlab.Connected{Key: c.Key.String(), Addrs: c.Addrs, Relayed: c.Relayed})
	}
	return s
}

// do answers one command.
func (p *peer) do(ctx context.Context, q netlab.Question) {
	began := time.Now()
	a, err := p.obey(ctx, q)
	a.ID, a.Took = q.ID, float64(time.Since(began).Microseconds())/1000
	if err != nil {
		a.Error, a.Code = err.Error(), string(market.CodeOf(err))
	}
	p.answer(a)
}
