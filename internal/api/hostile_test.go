package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"haggle/internal/api"
	"haggle/internal/view"
)

func request(ctx context.Context, t *testing.T, method, path, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://x"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func listenUnix(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// skipTo reads until a text has come, at most 64 KiB.
func skipTo(r io.Reader, text string) error {
	var seen strings.Builder
	for b := bufio.NewReader(io.LimitReader(r, 64<<10)); ; {
		c, err := b.ReadByte()
		if err != nil {
			return fmt.Errorf("no %q in %q: %w", text, seen.String(), err)
		}
		seen.WriteByte(c)
		if strings.HasSuffix(seen.String(), text) {
			return nil
		}
	}
}

func TestRefusesMalformedRequestsBeforeTheAgentSeesThem(t *testing.T) {
	f := &fakeAgent{}
	_, config := serveAgent(t, f)
	big := `{"image":"` + strings.Repeat("x", 256<<10) + `"}`
	for name, c := range map[string]struct {
		method, path, body, mime string
		status                   int
		code, says               string
	}{
		"no body":                {"POST", "/v1/leases", "", "application/json", 400, "bad_request", "body"},
		"not JSON":               {"POST", "/v1/leases", "image=lab", "application/json", 400, "bad_request", "invalid"},
		"half of JSON":           {"POST", "/v1/leases", `{"image":"lab"`, "application/json", 400, "bad_request", "unexpected end"},
		"another format":         {"POST", "/v1/leases", `<image/>`, "application/xml", 415, "bad_request", "content type"},
		"a number for a word":    {"POST", "/v1/leases", `{"image":7}`, "application/json", 422, "bad_request", "body.image"},
		"a word for a number":    {"POST", "/v1/leases", `{"image":"lab","gpus":"two"}`, "application/json", 422, "bad_request", "body.gpus"},
		"an unknown property":    {"POST", "/v1/leases", `{"image":"lab","budget":1}`, "application/json", 422, "bad_request", "body.budget"},
		"a missing property":     {"POST", "/v1/leases", `{"query":"dph<1","checkpoint":{},"collect":[{"local":"/x"}]}`, "application/json", 422, "bad_request", "remote"},
		"too large":              {"POST", "/v1/leases", big, "application/json", 413, "too_large", "262144"},
		"too large for nothing":  {"POST", "/v1/nowhere", big, "application/json", 413, "too_large", "262144"},
		"deeply nested":          {"POST", "/v1/leases", strings.Repeat("[", 60000), "application/json", 400, "bad_request", "depth"},
		"a negative offset":      {"GET", "/v1/leases/cafe/log?offset=-1", "", "", 422, "bad_request", "query.offset"},
		"a word for an offset":   {"GET", "/v1/leases/cafe/log?offset=end", "", "", 422, "bad_request", "query.offset"},
		"a long id":              {"GET", "/v1/leases/" + strings.Repeat("a", 129), "", "", 422, "bad_request", "path.id"},
		"a long query":           {"GET", "/v1/offers?query=" + strings.Repeat("a", 1025), "", "", 422, "bad_request", "query.query"},
		"an unknown path":        {"GET", "/v2/leases", "", "", 404, "unexpected_message", "GET /v2/leases"},
		"an unknown method":      {"DELETE", "/v1/leases/cafe", "", "", 404, "unexpected_message", "DELETE"},
		"a tunnel that is none":  {"GET", "/v1/leases/cafe/tunnel", "", "", 400, "bad_request", "Upgrade"},
		"a tunnel to a long id":  {"GET", "/v1/leases/" + strings.Repeat("a", 129) + "/tunnel", "", "", 400, "bad_request", ""},
		"a tunnel that is sent":  {"POST", "/v1/leases/cafe/tunnel", "", "", 404, "unexpected_message", "POST"},
		"a path that climbs out": {"GET", "/v1/leases/%2e%2e%2f%2e%2e/etc", "", "", 404, "unexpected_message", "GET"},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t.Context(), t, c.method, c.path, c.body)
			r.Header.Set("Content-Type", c.mime)
			answer, err := plain(t, config.Socket).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			var p view.Problem
			if err := json.NewDecoder(answer.Body).Decode(&p); err != nil {
				t.Fatal(err)
			}
			if answer.StatusCode != c.status || p.Code != c.code || !strings.Contains(p.Message+p.Hint, c.says) {
				t.Errorf("status %d, problem %+v; want %d %s with %q", answer.StatusCode, p, c.status, c.code, c.says)
			}
		})
	}
	if calls := f.seen(); len(calls) > 0 {
		t.Errorf("the agent was called: %q", calls)
	}
}

func TestRefusesAHeaderThatIsTooLarge(t *testing.T) {
	_, config := serveAgent(t, &fakeAgent{})
	r := request(t.Context(), t, "GET", "/v1/status", "")
	r.Header.Set("X", strings.Repeat("x", 64<<10))
	answer, err := plain(t, config.Socket).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %s", answer.Status)
	}
}

func TestGivesUpOnABodyThatDoesNotCome(t *testing.T) {
	f := &fakeAgent{}
	config := newConfig(t)
	config.BodyTimeout = 20 * time.Millisecond
	serve(t, api.NewAgentServer(config, f))
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", config.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/leases HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if err := skipTo(conn, "400 Bad Request"); err != nil {
		t.Error(err)
	}
	if calls := f.seen(); len(calls) > 0 {
		t.Errorf("the agent was called: %q", calls)
	}
}

func TestALongAnswerOutlivesTheTimeOfItsBody(t *testing.T) {
	config := newConfig(t)
	config.BodyTimeout = 20 * time.Millisecond
	waits := &waitingAgent{release: make(chan struct{})}
	serve(t, api.NewAgentServer(config, waits))
	timer := time.AfterFunc(5*config.BodyTimeout, func() { close(waits.release) })
	defer timer.Stop()
	if _, err := api.DialAgent(config.Socket).Bid(t.Context(), view.BidRequest{Image: "lab"}); err != nil {
		t.Error(err)
	}
}

// waitingAgent answers a bid only when it is released.
type waitingAgent struct {
	fakeAgent
	release chan struct{}
}

func (w *waitingAgent) Bid(ctx context.Context, _ view.BidRequest) (view.Lease, error) {
	select {
	case <-w.release:
		return lease("cafe", "granted"), nil
	case <-ctx.Done():
		return view.Lease{}, ctx.Err()
	}
}

func TestTheSocketIsForItsUserAlone(t *testing.T) {
	_, config := serveAgent(t, &fakeAgent{})
	for path, want := range map[string]os.FileMode{config.Socket: os.ModeSocket | 0o600, filepath.Dir(config.Socket): os.ModeDir | 0o700} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s is %v, want %v", path, info.Mode(), want)
		}
	}
}

func TestTakesOverADeadSocketAndNotALiveOne(t *testing.T) {
	f := &fakeAgent{}
	_, config := serveAgent(t, f)
	if err := api.NewAgentServer(config, f).Run(t.Context()); !errors.Is(err, api.ErrInUse) {
		t.Errorf("a second server ends with %v", err)
	}
	dead := newConfig(t)
	if err := os.MkdirAll(filepath.Dir(dead.Socket), 0o700); err != nil {
		t.Fatal(err)
	}
	l := listenUnix(t, dead.Socket)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	serve(t, api.NewAgentServer(dead, f))
	if _, err := api.DialAgent(dead.Socket).Status(t.Context()); err != nil {
		t.Error(err)
	}
	file := newConfig(t)
	file.Socket = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file.Socket, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := api.NewAgentServer(file, f).Listen(); err == nil {
		t.Error("a file was taken for a socket")
	}
	if text, err := os.ReadFile(file.Socket); err != nil || string(text) != "mine" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}
