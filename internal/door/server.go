package door

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"haggle/internal/tunnel"
)

// serveSSH is the kind ssh: a whole SSH server.
func (d *Door) serveSSH(ctx context.Context, _ json.RawMessage, c *tunnel.Channel) error {
	return d.serveConn(ctx, c)
}

// client is one SSH connection.
type client struct {
	door     *Door
	conn     *ssh.ServerConn
	channels atomic.Int32
	running  sync.WaitGroup

	mu       sync.Mutex
	forwards map[string]net.Listener
}

// serveConn speaks SSH on c until the connection ends, and all that it began has.
func (d *Door) serveConn(ctx context.Context, c net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()

	slow := time.AfterFunc(handshakeTime, func() { _ = c.Close() })
	conn, channels, requests, err := ssh.NewServerConn(c, d.ssh)
	slow.Stop()
	if err != nil {
		return refuse("bad_request", "no SSH handshake: %v", err)
	}
	cl := &client{door: d, conn: conn, forwards: map[string]net.Listener{}}
	cl.running.Go(func() { cl.answer(ctx, requests) })
	for ch := range channels {
		if cl.channels.Add(1) > maxChannels {
			cl.channels.Add(-1)
			_ = ch.Reject(ssh.ResourceShortage, "too many channels on this connection")
			continue
		}
		cl.running.Go(func() {
			defer cl.channels.Add(-1)
			cl.open(ctx, ch)
		})
	}
	cancel()
	cl.closeForwards()
	_ = conn.Close()
	cl.running.Wait()
	return nil
}

// open serves one channel to its end.
func (cl *client) open(ctx context.Context, ch ssh.NewChannel) {
	switch ch.ChannelType() {
	case "session":
		channel, requests, err := ch.Accept()
		if err != nil {
			return
		}
		s := &session{door: cl.door, channel: channel}
		s.serve(ctx, requests)
	case "direct-tcpip":
		var to struct {
			Host       string
			Port       uint32
			OriginHost string
			OriginPort uint32
		}
		if err := ssh.Unmarshal(ch.ExtraData(), &to); err != nil || to.Port > 65535 {
			_ = ch.Reject(ssh.ConnectionFailed, "bad address")
			return
		}
		conn, err := dialPort(ctx, to.Host, uint16(to.Port))
		cl.join(ctx, ch, conn, err)
	case "direct-streamlocal@openssh.com":
		var to struct {
			Path      string
			Reserved  string
			Reserved2 uint32
		}
		if err := ssh.Unmarshal(ch.ExtraData(), &to); err != nil {
			_ = ch.Reject(ssh.ConnectionFailed, "bad address")
			return
		}
		dialer := net.Dialer{Timeout: dialTime}
		conn, err := dialer.DialContext(ctx, "unix", cl.door.place(to.Path))
		cl.join(ctx, ch, conn, err)
	default:
		_ = ch.Reject(ssh.UnknownChannelType, "this door has sessions and forwards only")
	}
}

// join accepts a forward and copies both ways until its end.
func (cl *client) join(ctx context.Context, ch ssh.NewChannel, conn net.Conn, err error) {
	if err != nil {
		_ = ch.Reject(ssh.ConnectionFailed, short(err))
		return
	}
	channel, requests, err := ch.Accept()
	if err != nil {
		_ = conn.Close()
		return
	}
	go ssh.DiscardRequests(requests)
	_ = tunnel.Relay(ctx, channel, conn.(tunnel.Conn))
}

// answer serves the requests of the connection itself.
func (cl *client) answer(ctx context.Context, requests <-chan *ssh.Request) {
	for r := range requests {
		var ok bool
		var payload []byte
		switch r.Type {
		case "keepalive@openssh.com":
			ok = true
		case "tcpip-forward":
			ok, payload = cl.forwardPort(ctx, r.Payload)
		case "cancel-tcpip-forward":
			ok = cl.cancelPort(r.Payload)
		case "streamlocal-forward@openssh.com":
			ok = cl.forwardSocket(ctx, r.Payload)
		case "cancel-streamlocal-forward@openssh.com":
			ok = cl.cancelSocket(r.Payload)
		}
		if r.WantReply {
			_ = r.Reply(ok, payload)
		}
	}
}

// short is what the other side is told of an error of the system.
func short(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}

// closer closes both directions of a channel with the exit message of what ran in it.
func finish(channel ssh.Channel, kind string, payload any) {
	_, _ = channel.SendRequest(kind, false, ssh.Marshal(payload))
}

type exitStatus struct{ Status uint32 }

type exitSignal struct {
	Signal  string
	Dumped  bool
	Message string
	Lang    string
}

// say tells the person in front of a session why it does not go on.
func say(channel ssh.Channel, text string) {
	_, _ = io.WriteString(channel.Stderr(), text+"\r\n")
}
