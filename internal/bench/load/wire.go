//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// wireBuffer is what a relay takes at a time.
const wireBuffer = 64 << 10

// listen takes one connection and copies what comes to standard output.
func listen(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, l.Addr())
	conn, err := l.Accept()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return errors.Join(l.Close(), plainCopy(os.Stdout, conn), conn.Close())
}

// dial copies standard input to an address, and returns when the other side has closed.
func dial(ctx context.Context, address string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	if err := plainCopy(conn, os.Stdin); err != nil {
		return errors.Join(err, conn.Close())
	}
	if half, ok := conn.(*net.TCPConn); ok {
		err = half.CloseWrite()
	}
	return errors.Join(err, plainCopy(io.Discard, conn), conn.Close())
}

// plainCopy copies with read and write, as programs for such copies do.
func plainCopy(to io.Writer, from io.Reader) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, wireBuffer))
	return err
}

// echo sends back what comes, on every connection to a port of this machine's, or this job's, own address.
func echo(ctx context.Context, port string) error {
	return serve(ctx, port, func(conn net.Conn) error { return plainCopy(conn, conn) })
}

// relay joins every connection to it with one to an address.
func relay(ctx context.Context, to string) error {
	return serve(ctx, "0", func(conn net.Conn) error {
		far, err := new(net.Dialer).DialContext(ctx, "tcp", to)
		if err != nil {
			return err
		}
		go func() { _ = errors.Join(plainCopy(far, conn), far.Close()) }() // one of the two has gone
		return plainCopy(conn, far)
	})
}

// serve says its address and has each connection handled.
func serve(ctx context.Context, port string, handle func(net.Conn) error) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	if _, err := fmt.Println(l.Addr()); err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() { _ = errors.Join(handle(conn), conn.Close()) }() // the other side has gone
	}
}
