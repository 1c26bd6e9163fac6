//go:build unix

package door_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"testing"

	"haggle/internal/tunnel"
)

func TestAPingComesBackAsItWas(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	c, err := dial(t.Context(), j.address, tunnel.KindPing, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	nonce, back := make([]byte, tunnel.PingSize), make([]byte, tunnel.PingSize)
	for range 3 {
		_, _ = rand.Read(nonce)
		if _, err := c.Write(nonce); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, back); err != nil || !bytes.Equal(back, nonce) {
			t.Fatalf("%x came back as %x, %v", nonce, back, err)
		}
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(c); err != nil || len(rest) != 0 {
		t.Errorf("after the last ping: %x, %v", rest, err)
	}
}

func TestAPingThatIsCutShortIsRefused(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	c, err := dial(t.Context(), j.address, tunnel.KindPing, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(c)
	var told *tunnel.Error
	if len(rest) != 0 || !errors.As(err, &told) || told.Code != tunnel.CodeBadRequest {
		t.Errorf("%x, %v; want bad_request and nothing else", rest, err)
	}
}
