package runtimetest_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"haggle/runtime"
	"haggle/runtime/runtimetest"
)

func TestTheDoorOfTheProbeAnswersAndLeavesWhenNobodyComes(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "hg") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	for _, args := range [][]string{{"--idle", "100ms", "--root", dir, socket}, {socket, "--idle", "100ms", "--root", dir}} {
		out, said := io.Pipe()
		ended := make(chan int, 1)
		go func() {
			ended <- runtimetest.Probe(t.Context(), &runtimetest.Process{Args: append([]string{"probe", "door"}, args...), Stdout: said, Stderr: io.Discard})
		}()
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" || err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		for question, want := range map[string]string{"hello": "hello", "": "", "read /work/a\n": "kept", "counting": "counting"} {
			if got := knock(t, socket, question); got != want {
				t.Errorf("%q is answered by %q", question, got)
			}
		}
		if got := knock(t, socket, "count\n"); got != "5\n" {
			t.Errorf("it counts %q", got)
		}
		if got := knock(t, socket, "read /work/b\n"); !strings.HasPrefix(got, "error: ") {
			t.Errorf("a missing file: %q", got)
		}
		if code := <-ended; code != 0 {
			t.Errorf("it leaves with %d", code)
		}
	}
}

func knock(t *testing.T, socket, question string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	return exchange(t, conn.(*net.UnixConn), question)
}

func exchange(t *testing.T, c runtime.Conn, question string) string {
	t.Helper()
	defer c.Close()
	if _, err := io.WriteString(c, question); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Error(err)
	}
	return string(answer)
}

func TestTheFakesDoorIsTheTestsUnderSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, spec := newFake(t)
		fake.Door = func(id string, c runtime.Conn) {
			data, err := io.ReadAll(c)
			if err != nil || id != "a" {
				t.Errorf("job %s: %v", id, err)
			}
			_, _ = c.Write(bytes.ToUpper(data))
		}
		if err := fake.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		c, err := fake.Enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		// More than the path holds, so that somebody has to wait.
		if got := exchange(t, c, strings.Repeat("x", 1<<20)); got != strings.Repeat("X", 1<<20) {
			t.Errorf("%d bytes come back", len(got))
		}
		fake.Fail("Enter", runtime.ErrUnavailable)
		if _, err := fake.Enter(t.Context(), "a"); !errors.Is(err, runtime.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		fake.Shutdown()
	})
}
