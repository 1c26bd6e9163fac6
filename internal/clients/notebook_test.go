//go:build linux && clients

package clients_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestANotebookComputesBehindAForward opens Jupyter in a job as a browser does, and goes on where its kernel was when the agent
// and the rig's program have died.
func TestANotebookComputesBehindAForward(t *testing.T) {
	l := newLab(t, 1)
	l.rent("lab", "--offer", "rig-1", "--image", notebook().archive(t), "--for", "1h", "--port", "jupyter=8888", "--",
		"jupyter", "notebook", "--allow-root", "--no-browser", "--ip=127.0.0.1", "--port=8888")
	open := l.start(l.command("haggle", "open", "lab", "jupyter:"+freePort(t), "--print"))
	defer open.interrupt()
	await(t, "a link with a token", func() bool { return strings.Contains(open.out.String(), "token=") })
	var link *url.URL
	for line := range strings.Lines(open.out.String()) {
		if u, err := url.Parse(strings.TrimSpace(line)); err == nil && u.Query().Get("token") != "" {
			link = u
		}
	}
	n := &book{lab: l, address: link.Host, token: link.Query().Get("token")}
	n.page()
	kernel := n.kernel()
	n.connect(kernel)
	n.computes("x = 6", "")
	n.computes("print(x * 7)", "42\n")

	l.killAgent()
	l.awaitAgent()
	n.computes("x += 1\nprint(x * 6)", "42\n")

	l.killRig(1)
	l.restartRig(1)
	n.computes("x += 1\nprint(x)", "8\n")

	n.ws.close()
	n.connect(kernel)
	n.computes("print(x + 34)", "42\n")
	n.ws.close()
}

// book is a notebook's server as a browser sees it.
type book struct {
	*lab
	address, token string
	ws             *socket
	sent           int
}

// page wants the token to open the page.
func (b *book) page() {
	b.t.Helper()
	if got := b.ask(http.MethodGet, "/tree"); !strings.Contains(got, "<title>") {
		b.t.Errorf("the notebook's page is %.200q", got)
	}
}

func (b *book) ask(method, path string) string {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, "http://"+b.address+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "token "+b.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 400 {
		b.t.Fatalf("%s %s: %s, %v\n%s", method, path, res.Status, err, body)
	}
	return string(body)
}

// kernel starts a Python.
func (b *book) kernel() string {
	b.t.Helper()
	var k struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(b.ask(http.MethodPost, "/api/kernels")), &k); err != nil || k.ID == "" {
		b.t.Fatalf("no kernel: %v", err)
	}
	return k.ID
}

func (b *book) connect(kernel string) {
	b.t.Helper()
	ws, err := dialSocket(b.t.Context(), b.address, "/api/kernels/"+kernel+"/channels?token="+b.token)
	if err != nil {
		b.t.Fatal(err)
	}
	b.ws = ws
	b.t.Cleanup(ws.close)
}

// message is what kernels and notebooks tell each other.
type message struct {
	Header   header         `json:"header"`
	Parent   header         `json:"parent_header"`
	Metadata map[string]any `json:"metadata"`
	Content  map[string]any `json:"content"`
	Channel  string         `json:"channel"`
}

type header struct {
	ID      string `json:"msg_id"`
	User    string `json:"username"`
	Session string `json:"session"`
	Kind    string `json:"msg_type"`
	Version string `json:"version"`
}

// computes has the kernel run code, over the websocket that is open, and wants what it prints.
func (b *book) computes(code, want string) {
	b.t.Helper()
	b.sent++
	id := "m" + strings.Repeat("i", b.sent)
	text, err := json.Marshal(message{
		Header:   header{ID: id, User: "test", Session: "s", Kind: "execute_request", Version: "5.3"},
		Metadata: map[string]any{}, Channel: "shell",
		Content: map[string]any{"code": code, "silent": false, "store_history": true, "user_expressions": map[string]any{}, "allow_stdin": false},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.ws.send(1, text); err != nil {
		b.t.Fatal(err)
	}
	var out strings.Builder
	for {
		data, err := b.ws.receive()
		if err != nil {
			b.t.Fatalf("the websocket ended: %v", err)
		}
		var m message
		if err := json.Unmarshal(data, &m); err != nil {
			b.t.Fatal(err)
		}
		if m.Parent.ID != id {
			continue
		}
		switch m.Header.Kind {
		case "stream", "error":
			part, _ := m.Content["text"].(string)
			why, _ := m.Content["evalue"].(string)
			out.WriteString(part + why)
		case "status":
			if m.Content["execution_state"] == "idle" {
				if out.String() != want {
					b.t.Errorf("%q printed %q, want %q", code, out.String(), want)
				}
				return
			}
		}
	}
}
