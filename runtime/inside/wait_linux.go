package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// maxOrder bounds what a waiting process is told, in bytes.
const maxOrder = 16 << 20

// order is what a waiting process is told to become.
type order struct{ Args, Env [][]byte }

// wait waits in a container that was made before its job is known. In dir are two FIFOs: it is told by the one what to run, says
// by the other whether there is such a program, and runs it in its own place when it is told a second time. Until then it runs
// nothing of the job's. It returns only when that fails.
func wait(dir string) int {
	told, err := openFIFO(filepath.Join(dir, "told"))
	if err == nil {
		var says fifo
		if says, err = openFIFO(filepath.Join(dir, "says")); err == nil {
			err = await(told, says)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func await(told, says fifo) error {
	debug.FreeOSMemory() // it may wait for long
	if _, err := says.Write([]byte{0}); err != nil {
		return err
	}
	program, args, env, err := prepare(told)
	answer := []byte{0}
	if err != nil {
		answer = []byte(err.Error())
		answer = answer[:min(len(answer), 500)]
	}
	if _, werr := says.Write(answer); err != nil || werr != nil {
		return errors.Join(err, werr)
	}
	if _, err := io.ReadFull(told, make([]byte, 1)); err != nil {
		return err
	}
	return &os.PathError{Op: "exec", Path: program, Err: unix.Exec(program, args, env)}
}

// prepare reads an order and does with it what runc does with a job's.
func prepare(told io.Reader) (program string, args, env []string, err error) {
	var o order
	if err := json.NewDecoder(io.LimitReader(told, maxOrder)).Decode(&o); err != nil {
		return "", nil, nil, fmt.Errorf("no order: %w", err)
	}
	if len(o.Args) == 0 {
		return "", nil, nil, errors.New("no order: it names no program")
	}
	for _, a := range o.Args {
		args = append(args, string(a))
	}
	home := os.Getenv("HOME") // of the user, set by runc
	os.Clearenv()
	for _, v := range o.Env {
		key, value, _ := strings.Cut(string(v), "=")
		if err := os.Setenv(key, value); err != nil {
			return "", nil, nil, fmt.Errorf("variable %.80q: %w", v, err)
		}
	}
	if os.Getenv("HOME") == "" {
		if err := os.Setenv("HOME", home); err != nil {
			return "", nil, nil, err
		}
	}
	program, err = exec.LookPath(args[0])
	return program, args, os.Environ(), err
}

// fifo is one by its descriptor. Files of package os would start threads to wait with.
type fifo int

// openFIFO opens one to read and to write, which waits for nobody and sees no end of it.
func openFIFO(path string) (fifo, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fifo(fd), nil
}

func (f fifo) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(f), p)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}

func (f fifo) Write(p []byte) (int, error) {
	for {
		n, err := unix.Write(int(f), p)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}
