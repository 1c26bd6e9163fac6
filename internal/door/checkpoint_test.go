//go:build unix

package door_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"

	"haggle/internal/checkpoint"
	"haggle/internal/door"
	"haggle/internal/tunnel"
)

func key(t *testing.T) *age.X25519Identity {
	t.Helper()
	k, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// ask opens a channel and reads all that comes.
func (j *job) ask(kind string, args any) ([]byte, error) {
	j.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		j.t.Fatal(err)
	}
	c, err := dial(j.t.Context(), j.address, kind, raw)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return io.ReadAll(c)
}

func (j *job) checkpoint(args tunnel.CheckpointArgs) (checkpoint.Header, []byte) {
	j.t.Helper()
	b, err := j.ask(tunnel.KindCheckpoint, args)
	if err != nil {
		j.t.Fatal(err)
	}
	r := bufio.NewReader(bytes.NewReader(b))
	line, _ := r.ReadBytes('\n')
	var h checkpoint.Header
	if err := json.Unmarshal(line, &h); err != nil {
		j.t.Fatal(err)
	}
	rest, _ := io.ReadAll(r)
	return h, rest
}

func TestACheckpointComesHomeOnce(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	k := key(t)
	args := tunnel.CheckpointArgs{Recipients: []string{k.Recipient().String()}}
	if h, rest := j.checkpoint(args); h.Files != 0 || h.Follows || len(rest) != 0 {
		t.Errorf("of nothing: %+v and %d bytes", h, len(rest))
	}
	tree(t, filepath.Join(j.work, "ckpt"))
	write(t, filepath.Join(j.work, "ckpt", "next.tmp"), "half")
	h, rest := j.checkpoint(args)
	if h.Files != 2 || h.Bytes != 100_001 || !h.Follows {
		t.Errorf("%+v", h)
	}
	if bytes.Contains(rest, []byte("2222222222")) {
		t.Error("it is not encrypted")
	}
	back := filepath.Join(j.dir, "back")
	if err := door.RestoreCheckpoint(t.Context(), bytes.NewReader(rest), k, back); err != nil {
		t.Fatal(err)
	}
	sameTree(t, back)
	if _, err := os.Stat(filepath.Join(back, "next.tmp")); err == nil {
		t.Error("a half file came along")
	}
	args.Known = h.Digest
	if again, rest := j.checkpoint(args); again.Digest != h.Digest || again.Follows || len(rest) != 0 {
		t.Errorf("the same state again: %+v and %d bytes", again, len(rest))
	}
	write(t, filepath.Join(j.work, "ckpt", "a", "one"), "3")
	if again, _ := j.checkpoint(args); !again.Follows {
		t.Error("another state was not sent")
	}
}

func TestCheckpointsWithoutAKeyAreRefused(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	for _, args := range []tunnel.CheckpointArgs{
		{}, {Recipients: []string{"age1nonsense"}}, {Dir: "relative", Recipients: []string{key(t).Recipient().String()}},
	} {
		var told *tunnel.Error
		if _, err := j.ask(tunnel.KindCheckpoint, args); !errors.As(err, &told) || told.Code != tunnel.CodeBadRequest {
			t.Errorf("%+v: %v", args, err)
		}
	}
}

// bucket is an object store that fails at first.
type bucket struct {
	mu    sync.Mutex
	fail  int
	puts  map[string][]byte
	tries int
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tries++
	if b.tries <= b.fail {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if r.Method != http.MethodPut || r.ContentLength != int64(len(body)) || r.ContentLength <= 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	b.puts[r.URL.String()] = body
}

func (j *job) push(args door.PushArgs) door.PushStatus {
	j.t.Helper()
	b, err := j.ask(door.KindPush, args)
	if err != nil {
		j.t.Fatal(err)
	}
	var s door.PushStatus
	if err := json.Unmarshal(b, &s); err != nil {
		j.t.Fatal(err)
	}
	return s
}

func TestTheDoorPushesCheckpointsToAStore(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	k := key(t)
	store := &bucket{fail: 1, puts: map[string][]byte{}}
	s := httptest.NewServer(store)
	t.Cleanup(s.Close)
	tree(t, filepath.Join(j.work, "ckpt"))

	order := door.PushArgs{Recipients: []string{k.Recipient().String()}, URL: s.URL + "/c-{seq}.age?sig=secret", EveryMs: 60_000, Seq: 7}
	if got := j.push(order); !got.Active || got.Next != 7 || got.AtMs != 0 {
		t.Errorf("ordered: %+v", got)
	}
	got := j.push(door.PushArgs{Now: true})
	if got.Error != "" || got.Seq != 7 || got.Next != 8 || got.AtMs == 0 || got.Files != 2 {
		t.Fatalf("pushed: %+v", got)
	}
	if again := j.push(door.PushArgs{Now: true}); again.Seq != 7 || again.Error != "" {
		t.Errorf("the same state was pushed again: %+v", again)
	}
	body := store.puts["/c-7.age?sig=secret"]
	if int64(len(body)) != got.Bytes || len(store.puts) != 1 {
		t.Errorf("%d bytes in the store, %d said", len(body), got.Bytes)
	}
	back := filepath.Join(j.dir, "back")
	if err := door.RestoreCheckpoint(t.Context(), bytes.NewReader(body), k, back); err != nil {
		t.Fatal(err)
	}
	sameTree(t, back)
	if left, _ := os.ReadDir(filepath.Join(j.work, ".haggle-tmp")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if got := j.push(door.PushArgs{Stop: true}); got.Active {
		t.Errorf("stopped: %+v", got)
	}
}

func TestAFailedPushIsToldWithoutTheURL(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	s := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/", http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	tree(t, filepath.Join(j.work, "ckpt"))
	order := door.PushArgs{Recipients: []string{key(t).Recipient().String()}, URL: s.URL + "/?sig=secret", Now: true}
	got := j.push(order)
	if got.Error == "" || strings.Contains(got.Error, "secret") || got.AtMs != 0 {
		t.Errorf("%+v", got)
	}
	for _, bad := range []door.PushArgs{{URL: "file:///etc/passwd"}, {URL: "http://"}, {}, {URL: s.URL, EveryMs: 5}} {
		bad.Recipients = order.Recipients
		if bad.URL == "" {
			j.push(door.PushArgs{Stop: true})
		}
		if _, err := j.ask(door.KindPush, bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

func TestADialReachesAPortOfTheJob(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	n, _ := strconv.ParseUint(port, 10, 16)
	raw, _ := json.Marshal(tunnel.DialArgs{Port: uint16(n)})
	c, err := dial(t.Context(), j.address, tunnel.KindDial, raw)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write([]byte("hello"))
	_ = c.CloseWrite()
	if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

func TestADialToAClosedPortHasACode(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	for port, code := range map[uint16]string{1: tunnel.CodeNoSuchPort, 0: tunnel.CodeBadRequest} {
		var told *tunnel.Error
		if _, err := j.ask(tunnel.KindDial, tunnel.DialArgs{Port: port}); !errors.As(err, &told) || told.Code != code {
			t.Errorf("port %d: %v", port, err)
		}
	}
}

func TestGarbageIsDroppedAndTheDoorGoesOn(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	for _, garbage := range []string{"\x00", strings.Repeat("\xff", 100_000), "GET / HTTP/1.1\r\n\r\n", ""} {
		c, err := opener(j.address)(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, garbage)
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
	c, err := dial(t.Context(), j.address, tunnel.KindSSH, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, strings.Repeat("no ssh at all ", 10_000))
	_ = c.CloseWrite()
	_, _ = io.Copy(io.Discard, c)
	_ = c.Close()
	if got := output(t, j.ssh("echo on")); got != "on\n" {
		t.Errorf("%q", got)
	}
}
