package door

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"

	"haggle/internal/tunnel"
)

// forwardRequest asks for a port of the job that leads to the renter's machine; 0 is any.
type forwardRequest struct {
	Host string
	Port uint32
}

func (f forwardRequest) key() string { return net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))) }

// forwardPort listens on a port of the job's loopback, whatever address was asked for, as OpenSSH does unless its owner says
// otherwise.
func (cl *client) forwardPort(ctx context.Context, payload []byte) (bool, []byte) {
	var f forwardRequest
	if err := ssh.Unmarshal(payload, &f); err != nil || f.Port > 65535 {
		return false, nil
	}
	address := "127.0.0.1"
	if ip := net.ParseIP(f.Host); ip != nil && ip.To4() == nil && ip.IsLoopback() {
		address = "::1"
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(int(f.Port))))
	if err != nil {
		return false, nil
	}
	var reply []byte
	if f.Port == 0 {
		f.Port = uint32(l.Addr().(*net.TCPAddr).Port)
		reply = ssh.Marshal(struct{ Port uint32 }{f.Port})
	}
	ok := cl.accept(ctx, f.key(), l, "forwarded-tcpip", func(c net.Conn) []byte {
		from := c.RemoteAddr().(*net.TCPAddr)
		return ssh.Marshal(struct {
			Host       string
			Port       uint32
			OriginHost string
			OriginPort uint32
		}{f.Host, f.Port, from.IP.String(), uint32(from.Port)})
	})
	return ok, reply
}

func (cl *client) cancelPort(payload []byte) bool {
	var f forwardRequest
	return ssh.Unmarshal(payload, &f) == nil && cl.cancel(f.key())
}

// forwardSocket listens on a unix socket in the job.
func (cl *client) forwardSocket(ctx context.Context, payload []byte) bool {
	var f struct{ Path string }
	if err := ssh.Unmarshal(payload, &f); err != nil || f.Path == "" {
		return false
	}
	path := cl.door.place(f.Path)
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return false
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return false
	}
	return cl.accept(ctx, "unix "+f.Path, l, "forwarded-streamlocal@openssh.com", func(net.Conn) []byte {
		return ssh.Marshal(struct{ Path, Reserved string }{f.Path, ""})
	})
}

func (cl *client) cancelSocket(payload []byte) bool {
	var f struct{ Path string }
	return ssh.Unmarshal(payload, &f) == nil && cl.cancel("unix "+f.Path)
}

// accept opens a channel to the renter's machine for each connection to l, until l is closed. It has l from now on.
func (cl *client) accept(ctx context.Context, key string, l net.Listener, kind string, describe func(net.Conn) []byte) bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if _, taken := cl.forwards[key]; taken || cl.forwards == nil || len(cl.forwards) >= maxForwards {
		_ = l.Close()
		return false
	}
	cl.forwards[key] = l
	cl.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
					return
				}
				pause(ctx, 100*time.Millisecond) // most often there is no file descriptor left
				continue
			}
			if cl.channels.Add(1) > maxChannels {
				cl.channels.Add(-1)
				_ = conn.Close()
				continue
			}
			cl.running.Go(func() {
				defer cl.channels.Add(-1)
				channel, requests, err := cl.conn.OpenChannel(kind, describe(conn))
				if err != nil {
					_ = conn.Close()
					return
				}
				go ssh.DiscardRequests(requests)
				_ = tunnel.Relay(ctx, channel, conn.(tunnel.Conn))
			})
		}
	})
	return true
}

func (cl *client) cancel(key string) bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	l, ok := cl.forwards[key]
	if ok {
		delete(cl.forwards, key)
		_ = l.Close()
	}
	return ok
}

func (cl *client) closeForwards() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for _, l := range cl.forwards {
		_ = l.Close()
	}
	cl.forwards = nil
}
