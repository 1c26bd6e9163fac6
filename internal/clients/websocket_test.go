//go:build linux && clients

package clients_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// socket is a websocket of a client: enough of RFC 6455 for texts both ways.
type socket struct {
	conn net.Conn
	in   *bufio.Reader
}

// maxText bounds a message that comes in.
const maxText = 1 << 20

// dialSocket opens a websocket at an address and a path.
func dialSocket(ctx context.Context, address, path string) (*socket, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	key := make([]byte, 16)
	_, _ = rand.Read(key) // it never fails
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n",
		path, address, base64.StdEncoding.EncodeToString(key))
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	s := &socket{conn, bufio.NewReader(conn)}
	res, err := http.ReadResponse(s.in, nil)
	if err == nil && res.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("the server answers %s", res.Status)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

func (s *socket) close() { _ = s.conn.Close() }

// send sends a frame of a kind: 1 is a text, 10 a pong.
func (s *socket) send(kind byte, data []byte) error {
	frame := []byte{0x80 | kind}
	switch n := len(data); {
	case n < 126:
		frame = append(frame, 0x80|byte(n))
	case n < 1<<16:
		frame = binary.BigEndian.AppendUint16(append(frame, 0x80|126), uint16(n))
	default:
		frame = binary.BigEndian.AppendUint64(append(frame, 0x80|127), uint64(n))
	}
	mask := make([]byte, 4)
	_, _ = rand.Read(mask) // it never fails
	frame = append(frame, mask...)
	for i, b := range data {
		frame = append(frame, b^mask[i%4])
	}
	_, err := s.conn.Write(frame)
	return err
}

// receive returns the next text.
func (s *socket) receive() ([]byte, error) {
	var text []byte
	for {
		last, kind, data, err := s.frame()
		switch {
		case err != nil:
			return nil, err
		case kind == 8:
			return nil, io.EOF
		case kind == 9:
			if err := s.send(10, data); err != nil {
				return nil, err
			}
			continue
		case kind == 10:
			continue
		}
		if text = append(text, data...); len(text) > maxText {
			return nil, fmt.Errorf("a text of %d bytes", len(text))
		}
		if last {
			return text, nil
		}
	}
}

// frame reads one frame of a server, which masks nothing.
func (s *socket) frame() (last bool, kind byte, data []byte, err error) {
	if err := s.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return false, 0, nil, err
	}
	head := make([]byte, 2)
	if _, err := io.ReadFull(s.in, head); err != nil {
		return false, 0, nil, err
	}
	size := uint64(head[1])
	switch size {
	case 126:
		var n uint16
		err = binary.Read(s.in, binary.BigEndian, &n)
		size = uint64(n)
	case 127:
		err = binary.Read(s.in, binary.BigEndian, &size)
	}
	if err == nil && size > maxText {
		err = fmt.Errorf("a frame of %d bytes", size)
	}
	if err != nil {
		return false, 0, nil, err
	}
	data = make([]byte, size)
	_, err = io.ReadFull(s.in, data)
	return head[0]&0x80 != 0, head[0] & 0x0f, data, err
}
