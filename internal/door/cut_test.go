//go:build unix

package door_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"haggle/internal/tunnel"
)

// cutter opens paths and can break the one there is.
type cutter struct {
	open tunnel.Opener
	mu   sync.Mutex
	last tunnel.Conn
	made int
}

func (c *cutter) Open(ctx context.Context) (tunnel.Conn, error) {
	conn, err := c.open(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.last = conn
		c.made++
	}
	return conn, err
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.last.Close()
}

func TestAShellSurvivesTheConnectionsUnderIt(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	paths := &cutter{open: opener(j.address)}
	c, err := tunnel.Dial(t.Context(), tunnel.Config{Open: paths.Open, Request: tunnel.Request{Kind: tunnel.KindSSH}})
	if err != nil {
		t.Fatal(err)
	}
	conn, chans, reqs, err := ssh.NewClientConn(c, "job", &ssh.ClientConfig{HostKeyCallback: ssh.InsecureIgnoreHostKey()}) //nolint:gosec // a test's
	if err != nil {
		t.Fatal(err)
	}
	client := ssh.NewClient(conn, chans, reqs)
	defer client.Close()
	s, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RequestPty("xterm", 24, 80, ssh.TerminalModes{ssh.ECHO: 0}); err != nil {
		t.Fatal(err)
	}
	in, _ := s.StdinPipe()
	out, _ := s.StdoutPipe()
	if err := s.Start("n=0; while read line; do n=$((n+1)); echo $n $line; done"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	for i := 1; i <= 10; i++ {
		if i%3 == 0 {
			paths.cut()
		}
		if _, err := fmt.Fprintf(in, "line%d\n", i); err != nil {
			t.Fatal(err)
		}
		if got, err := r.ReadString('\n'); got != fmt.Sprintf("%d line%d\r\n", i, i) {
			t.Fatalf("%q, %v", got, err)
		}
	}
	_ = in.Close()
	_, _ = io.Copy(io.Discard, r)
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	if paths.made != 4 {
		t.Errorf("%d paths were made", paths.made)
	}
}
