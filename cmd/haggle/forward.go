package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/tunnel"
	"haggle/internal/view"
	"haggle/market"
)

// loopback is where forwards listen unless the user wants it otherwise.
const loopback = "127.0.0.1"

func (p *program) forwardCommand() *cobra.Command {
	var bind string
	var verbose, asJSON bool
	c := p.action(&cobra.Command{
		Use:   "forward LEASE PORT|NAME[:LOCAL]…",
		Short: "reach ports of a job on this machine",
		Long: "Listen on 127.0.0.1 and carry every connection to a port inside the job. A port that the job declared (--port of run) goes\n" +
			"by its name, too. LOCAL is the port on this machine: the same number where it is free and not given. Connections\n" +
			"survive restarts of the agent and of the rig's program. Ctrl-C ends it.",
		Example: "  haggle forward train 8888\n  haggle forward train jupyter tensorboard:16006",
		Args:    cli.Words(2, 64, "LEASE and a port"),
	}, func(ctx context.Context, args []string) error {
		l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Lease(ctx, args[0]) })
		if err != nil {
			return err
		}
		if ip := net.ParseIP(bind); ip == nil || !ip.IsLoopback() {
			p.Say("everyone who reaches %s reaches the job's ports now", clean(bind))
		}
		var list []*forward
		for _, text := range args[1:] {
			f, err := p.listen(ctx, l, bind, text)
			if err != nil {
				closeAll(list)
				return err
			}
			f.verbose = verbose
			list = append(list, f)
		}
		if asJSON {
			if err := p.JSON(addresses(list)); err != nil {
				closeAll(list)
				return err
			}
		}
		for _, f := range list {
			if !asJSON {
				p.Show("%s -> %s", f.listener.Addr(), f.target())
			}
		}
		return p.carry(ctx, l, list)
	})
	flags := c.Flags()
	flags.StringVar(&bind, "bind", loopback, "listen on this address; anything but loopback lets others in")
	flags.BoolVarP(&verbose, "verbose", "v", false, "say what each connection carried")
	flags.BoolVar(&asJSON, "json", false, "print the addresses as JSON")
	return c
}

// forward is one port that is carried.
type forward struct {
	*program
	lease    string
	name     string // of the port, where it has one
	port     uint16
	listener net.Listener
	verbose  bool
	refused  atomic.Bool // nothing listened at the last connection, and that was said
}

// forwardAddress is a forward for programs.
type forwardAddress struct {
	Name  string `json:"name,omitempty"`
	Port  uint16 `json:"port"`
	Local string `json:"local"`
}

func addresses(list []*forward) []forwardAddress {
	out := []forwardAddress{}
	for _, f := range list {
		out = append(out, forwardAddress{f.name, f.port, f.listener.Addr().String()})
	}
	return out
}

// target names what a forward leads to.
func (f *forward) target() string {
	text := "port " + strconv.Itoa(int(f.port))
	if f.name != "" {
		text = clean(f.name) + ", " + text
	}
	return text + " of lease " + short(f.lease)
}

// listen makes a forward of PORT|NAME[:LOCAL]. The caller closes it.
func (p *program) listen(ctx context.Context, l view.Lease, bind, text string) (*forward, error) {
	remote, local, given := strings.Cut(text, ":")
	f := &forward{program: p.fork(), lease: l.ID}
	var err error
	if f.name, f.port, err = portOf(l, remote); err != nil {
		return nil, err
	}
	wanted := f.port
	if given {
		if wanted, err = parsePort(local); err != nil {
			return nil, cli.Usage(text+": "+err.Error(), "write PORT:LOCAL, such as 8888:18888")
		}
	}
	if l.Isolation == "none" { // a lab's job is a process of this machine: its port here would lead back to us
		if given && wanted == f.port {
			return nil, cli.Usage("this job has no ports of its own: port "+remote+" of the job is that of this machine", "choose another local port: "+remote+":LOCAL")
		}
		if !given {
			wanted = 0
		}
	}
	var listens net.ListenConfig
	f.listener, err = listens.Listen(ctx, "tcp", net.JoinHostPort(bind, strconv.Itoa(int(wanted))))
	if err != nil && !given {
		f.listener, err = listens.Listen(ctx, "tcp", net.JoinHostPort(bind, "0"))
		if err == nil {
			p.Say("port %d is taken on this machine: %s takes its place", wanted, f.listener.Addr())
		}
	}
	if err != nil {
		return nil, hinted(market.ClassFailed, "cannot listen: "+err.Error(), "choose another local port: "+remote+":LOCAL")
	}
	return f, nil
}

// portOf finds a port by its number or by the name that the lease gives it.
func portOf(l view.Lease, text string) (name string, port uint16, err error) {
	for _, d := range l.Ports {
		if d.Name == text && text != "" {
			return d.Name, d.Port, nil
		}
	}
	port, err = parsePort(text)
	if err == nil {
		for _, d := range l.Ports {
			if d.Port == port {
				return d.Name, port, nil
			}
		}
		return "", port, nil
	}
	hint := "this lease names none; write the port's number"
	if len(l.Ports) > 0 {
		var names []string
		for _, d := range l.Ports {
			names = append(names, clean(d.Name)+"="+strconv.Itoa(int(d.Port)))
		}
		hint = "the lease's ports are " + strings.Join(names, ", ")
	}
	return "", 0, hinted(market.ClassNotFound, "the lease has no port "+clean(text), hint)
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a port from 1 to 65535", clean(text))
	}
	return uint16(n), nil
}

func closeAll(list []*forward) {
	for _, f := range list {
		_ = f.listener.Close()
	}
}

// carry serves forwards until Ctrl-C, or until the job is over.
func (p *program) carry(ctx context.Context, l view.Lease, list []*forward) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, f := range list {
		all.Go(func() { f.serve(within) })
	}
	changes := make(chan view.Lease)
	watcher := p.fork()
	all.Go(func() {
		if err := watcher.watch(within, l.ID, changes); err != nil {
			cancel(err)
		}
	})
	state := ""
	for within.Err() == nil && state == "" {
		select {
		case now := <-changes:
			if now.State == string(market.JobEnded) || now.State == string(market.JobPaused) {
				state = now.State
			}
		case <-within.Done():
		}
	}
	cause := context.Cause(within)
	cancel(nil)
	closeAll(list)
	all.Wait()
	switch {
	case state != "":
		p.Say("the job of lease %s is over: %s", short(l.ID), clean(state))
		return nil
	case ctx.Err() != nil:
		return nil // that is how it ends
	}
	return cause
}

// serve takes connections until ctx ends, and waits for those that are open.
func (f *forward) serve(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { _ = f.listener.Close() })()
	var open sync.WaitGroup
	defer open.Wait()
	for {
		conn, err := f.listener.Accept()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if err == nil {
				_ = conn.Close()
			}
			return
		case err != nil: // most often there are too many open files
			pause(ctx, 100*time.Millisecond)
			continue
		}
		open.Go(func() { f.connect(ctx, conn) })
	}
}

// connect carries one connection to its end.
func (f *forward) connect(ctx context.Context, conn net.Conn) {
	began := time.Now()
	counted := &countingConn{Conn: conn}
	c, err := f.channel(ctx, f.lease, tunnel.KindDial, tunnel.DialArgs{Port: f.port}, nil)
	if err == nil {
		err = tunnel.Relay(ctx, counted, c)
	} else {
		_ = conn.Close()
	}
	var told *tunnel.Error
	var coded *market.Error
	switch {
	case ctx.Err() != nil:
		return
	case errors.As(err, &told) || errors.As(err, &coded):
		if !f.refused.Swap(true) || f.verbose {
			f.Say("%s", sentence(portFault(err, f.port)))
		}
		return
	}
	f.refused.Store(false)
	if f.verbose {
		f.Say("%s: %s to the job, %s from it, %s", f.target(), cli.Bytes(counted.in.Load()), cli.Bytes(counted.out.Load()), lasting(time.Since(began).Milliseconds()))
	}
}

// countingConn counts what a connection carries.
type countingConn struct {
	net.Conn
	in, out atomic.Int64
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.Add(int64(n))
	return n, err
}

func (c *countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.out.Add(int64(n))
	return n, err
}

// CloseWrite tells the other side that nothing more comes.
func (c *countingConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// pause returns after a while, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
