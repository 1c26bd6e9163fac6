//go:build linux

package remote_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"haggle/runtime"
	"haggle/runtime/archive"
	"haggle/runtime/remote"
)

// Each makes the test binary another program: a client of the socket that it names, or one that listens there and is no helper.
const (
	clientVar   = "REMOTE_TEST_CLIENT"
	impostorVar = "REMOTE_TEST_IMPOSTOR"
)

func TestMain(m *testing.M) {
	if socket := os.Getenv(clientVar); socket != "" {
		if _, err := remote.Dial(context.Background(), socket).List(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if socket := os.Getenv(impostorVar); socket != "" {
		if _, err := net.Listen("unix", socket); err != nil { //nolint:noctx // its end is the process's
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("up")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func requireRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("needs root, to be several users")
	}
	t.Skip("needs root, to be several users")
}

func TestOnlyRootAndOneUserAreLetIn(t *testing.T) {
	requireRoot(t)
	const daemon, other = 61001, 61002
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, without := range [][]string{nil, {remote.ProtectPeer}} {
		socket := socketPath(t)
		serve(t, remote.Config{Socket: socket, UID: daemon, GID: daemon, Runtime: newEngine(t), Without: without})
		dir := filepath.Dir(socket)
		binary := filepath.Join(dir, "client")
		if err := os.WriteFile(binary, self, 0o755); err != nil {
			t.Fatal(err)
		}
		// Even where all files let everybody in.
		if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(socket, 0o666)); err != nil {
			t.Fatal(err)
		}
		for uid, want := range map[uint32]bool{0: true, daemon: true, other: without != nil} {
			cmd := exec.CommandContext(t.Context(), binary)
			cmd.Env, cmd.Dir = append(os.Environ(), clientVar+"="+socket), "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
			out, err := cmd.CombinedOutput()
			if (err == nil) != want {
				t.Errorf("without %q uid %d gets: %v: %s", without, uid, err, out)
			}
		}
	}
}

func TestTheSocketIsOfTheUsersGroup(t *testing.T) {
	requireRoot(t)
	socket := socketPath(t)
	serve(t, remote.Config{Socket: socket, UID: 61001, GID: 61003, Runtime: newEngine(t)})
	info, err := os.Stat(socket)
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	if info.Mode().Perm() != 0o660 || stat.Uid != 0 || stat.Gid != 61003 {
		t.Errorf("%v, uid %d, gid %d", info.Mode(), stat.Uid, stat.Gid)
	}
}

func TestNobodyButRootCanStandInForTheHelper(t *testing.T) {
	requireRoot(t)
	socket := socketPath(t)
	dir := filepath.Dir(socket)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "impostor")
	if err := errors.Join(os.WriteFile(binary, self, 0o755), os.Chmod(dir, 0o777)); err != nil { // he may listen there
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Env, cmd.Dir = append(os.Environ(), impostorVar+"="+socket), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 61004, Gid: 61004}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	if _, err := io.ReadFull(out, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	_, err = dial(t, socket).List(within(t))
	if !errors.Is(err, runtime.ErrUnavailable) || !strings.Contains(err.Error(), "of another user") {
		t.Errorf("got %v", err)
	}
}

func TestASecondHelperIsRefusedAndADeadOnesSocketIsReplaced(t *testing.T) {
	e := newEngine(t)
	socket := socketPath(t)
	end := serve(t, remote.Config{Socket: socket, Runtime: e})
	second, err := remote.NewServer(remote.Config{Socket: socket, Runtime: e})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Listen(t.Context()); !errors.Is(err, remote.ErrInUse) {
		t.Errorf("a second helper: %v", err)
	}
	end()
	addr := &syscall.SockaddrUnix{Name: socket}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(syscall.Bind(fd, addr), syscall.Close(fd)); err != nil { // as a death leaves it
		t.Fatal(err)
	}
	serve(t, remote.Config{Socket: socket, Runtime: e})
	if err := dial(t, socket).Ready(within(t)); err != nil {
		t.Error(err)
	}
}

func TestNoMoreJobsThanTheBound(t *testing.T) {
	for _, without := range [][]string{nil, {remote.ProtectJobs}} {
		e := newEngine(t)
		c := pair(t, remote.Config{Runtime: e, Limits: remote.Limits{Jobs: 2}, Without: without})
		ctx := within(t)
		for _, id := range []string{"a", "b", "a"} { // the last one is there already
			if err := c.Create(ctx, e.spec(id, "exit", "0")); err != nil {
				t.Fatal(err)
			}
		}
		err := c.Create(ctx, e.spec("c", "exit", "0"))
		if without == nil != errors.Is(err, runtime.ErrNoRoom) {
			t.Errorf("without %q a third job: %v", without, err)
		}
		if err := errors.Join(c.Remove(ctx, "a"), c.Create(ctx, e.spec("d", "exit", "0"))); without == nil && err != nil {
			t.Errorf("after one went: %v", err)
		}
	}
}

// image makes an archive with a file of some random bytes.
func image(t *testing.T, size int) []byte {
	t.Helper()
	noise := make([]byte, size)
	_, _ = rand.Read(noise) // it never fails
	var b bytes.Buffer
	_, err := archive.Write(&b, archive.Image{Entrypoint: []string{"/probe"}, Files: []archive.File{{
		Path: "/probe", Mode: 0o755, Size: int64(size), Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(noise)), nil },
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestImagesAreBounded(t *testing.T) {
	small, large := image(t, 1000), image(t, 3<<20)
	for _, without := range [][]string{nil, {remote.ProtectImages}} {
		e := newEngine(t)
		c := pair(t, remote.Config{Runtime: e, Without: without, Limits: remote.Limits{
			Images: 3, ImageBytes: int64(len(large)) - 1, ImagesBytes: 2 * int64(len(large)),
		}})
		ctx := within(t)
		bring := func(name string, data []byte) error {
			_, err := c.Import(ctx, name, bytes.NewReader(data))
			return err
		}
		refused := func(what string, err, class error) {
			t.Helper()
			if without == nil != errors.Is(err, class) {
				t.Errorf("without %q %s: %v", without, what, err)
			}
		}
		refused("a large image", bring("large", large), runtime.ErrImageTooBig)
		for _, name := range []string{"one", "two", "one"} {
			if err := bring(name, small); err != nil {
				t.Fatal(err)
			}
		}
		refused("a fourth image", bring("three", small), runtime.ErrNoRoom)
	}
	e := newEngine(t)
	c := pair(t, remote.Config{Runtime: e, Limits: remote.Limits{ImagesBytes: int64(len(large)) - 1}})
	if _, err := c.Import(within(t), "large", bytes.NewReader(large)); !errors.Is(err, runtime.ErrNoRoom) {
		t.Errorf("more than all images may take: %v", err)
	}
}

func TestAnArchiveThatCannotBeReadIsTheCallersFault(t *testing.T) {
	c := pair(t, remote.Config{Runtime: newEngine(t)})
	fault := errors.New("the disk is gone")
	_, err := c.Import(within(t), "x", io.MultiReader(strings.NewReader("tar"), faulty{fault}))
	if !errors.Is(err, fault) {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"", "-rf", "a b", "a\n", strings.Repeat("a", 300)} {
		if _, err := c.Import(within(t), name, strings.NewReader("x")); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("name %.20q: %v", name, err)
		}
	}
}

func TestStreamsAreBounded(t *testing.T) {
	e := newEngine(t)
	c := pair(t, remote.Config{Runtime: e, Limits: remote.Limits{Streams: 1, Watches: 1}})
	ctx := within(t)
	if err := c.Create(ctx, e.spec("a", "stubborn")); err != nil {
		t.Fatal(err)
	}
	log, err := c.Log(ctx, "a", 0, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Log(ctx, "a", 0, true); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("a second log: %v", err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	await(t, "a place for the next log", func() bool {
		next, err := c.Log(ctx, "a", 0, true)
		return err == nil && next.Close() == nil
	})
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if _, err := c.Watch(watching); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Watch(ctx); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("a second watch: %v", err)
	}
	if _, err := c.Status(ctx, "a"); err != nil {
		t.Errorf("calls go on beside full streams: %v", err)
	}
}

func TestAnImageTakesAsLongToUnpackAsItTakes(t *testing.T) {
	const idle = 20 * time.Millisecond
	e := newEngine(t)
	c := pair(t, remote.Config{Runtime: e, Limits: remote.Limits{ImageIdle: idle}})
	e.unpack = func(ctx context.Context) error {
		select {
		case <-ctx.Done(): // as if the sender had gone
			return ctx.Err()
		case <-time.After(10 * idle):
			return nil
		}
	}
	for range 2 { // the second on the same connection
		if _, err := c.Import(within(t), "slow", bytes.NewReader(image(t, 1000))); err != nil {
			t.Error(err)
		}
	}
}
