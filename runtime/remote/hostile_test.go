//go:build linux

package remote_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"haggle/runtime/remote"
)

// raw sends bytes and returns the status of the answer; 0 where the connection was closed without one.
func raw(t *testing.T, socket, message string) (status int, body string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(conn, message) }()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	data, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return answer.StatusCode, string(data)
}

func post(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

func TestNothingButTheProtocolIsAnswered(t *testing.T) {
	e := newEngine(t)
	socket := socketPath(t)
	serve(t, remote.Config{Socket: socket, Runtime: e})
	spec := fmt.Sprintf(`"ID":"a","Image":%q`, e.image.Digest)
	for name, message := range map[string]string{
		"an unknown path":                 "GET /v1/files HTTP/1.1\r\nHost: h\r\n\r\n",
		"another version":                 "GET /v2/jobs HTTP/1.1\r\nHost: h\r\n\r\n",
		"another method":                  "PUT /v1/jobs HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
		"a path upwards":                  "GET /v1/jobs/../../etc/passwd HTTP/1.1\r\nHost: h\r\n\r\n",
		"an id that is a path":            "GET /v1/jobs/..%2f..%2fetc HTTP/1.1\r\nHost: h\r\n\r\n",
		"an id of a log that is a path":   "GET /v1/jobs/..%2f..%2fetc/log?offset=0 HTTP/1.1\r\nHost: h\r\n\r\n",
		"a negative offset":               "GET /v1/jobs/a/log?offset=-1 HTTP/1.1\r\nHost: h\r\n\r\n",
		"an offset that is none":          "GET /v1/jobs/a/log?offset=x HTTP/1.1\r\nHost: h\r\n\r\n",
		"no JSON":                         post("/v1/jobs", "hello"),
		"no body":                         post("/v1/jobs", ""),
		"two values":                      post("/v1/jobs", `{"Spec":{`+spec+`}}{}`),
		"an unknown field":                post("/v1/jobs", `{"Spec":{`+spec+`},"Mounts":["/"]}`),
		"an unknown field of the spec":    post("/v1/jobs", `{"Spec":{`+spec+`,"Rootfs":"/"}}`),
		"a spec that is none":             post("/v1/jobs", `{"Spec":{"ID":"A B"}}`),
		"a message without end":           fmt.Sprintf("POST /v1/jobs HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", 9<<20, strings.Repeat(" ", 9<<20)),
		"a nested message":                post("/v1/jobs", strings.Repeat(`{"Spec":`, 20_000)),
		"a negative grace":                post("/v1/jobs/a/stop", `{"GraceNanos":-1}`),
		"a grace of a year":               post("/v1/jobs/a/stop", `{"GraceNanos":31536000000000000}`),
		"a negative power":                post("/v1/power", `{"UUID":"GPU-1","Milliwatt":-1}`),
		"an image that is a path":         "DELETE /v1/images/..%2f..%2fetc HTTP/1.1\r\nHost: h\r\n\r\n",
		"an image that is a filter":       "DELETE /v1/images/sha256:a,name==b HTTP/1.1\r\nHost: h\r\n\r\n",
		"an image without a name":         "PUT /v1/images HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
		"a header without end":            "GET /v1/jobs HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n",
		"something that is not even HTTP": strings.Repeat("\x00", 1024) + "\r\n\r\n",
	} {
		status, body := raw(t, socket, message)
		if status == http.StatusOK {
			t.Errorf("%s is answered: %s", name, body)
		}
	}
	if list, err := dial(t, socket).List(within(t)); err != nil || len(list) != 0 {
		t.Errorf("afterwards there are jobs: %+v: %v", list, err)
	}
}

func TestABodyThatStallsDoesNotHoldTheHelper(t *testing.T) {
	e := newEngine(t)
	socket := socketPath(t)
	end := serve(t, remote.Config{Socket: socket, Runtime: e, Limits: remote.Limits{Calls: 1}})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/jobs HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t, socket).List(within(t)); err != nil {
		t.Errorf("a call beside it: %v", err)
	}
	end() // and the server ends though that request never will
}

func TestAnUnknownProtectionIsRefused(t *testing.T) {
	if _, err := remote.NewServer(remote.Config{Socket: "/tmp/x", Runtime: newEngine(t), Without: []string{"nothing"}}); err == nil {
		t.Error("it is taken")
	}
	if _, err := remote.NewServer(remote.Config{Socket: "relative", Runtime: newEngine(t)}); err == nil {
		t.Error("a relative path is taken")
	}
}
