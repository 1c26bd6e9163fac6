package pay

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	lingering  = 250 * time.Millisecond // for a child that a program left behind and that still holds its stdout
	mostStderr = 4 << 10
)

// errTooLong ends a program that writes too much.
var errTooLong = errors.New("an answer without end")

// run starts a program, gives it its input and returns what it wrote. Its processes are gone when run returns, but for those
// that have left its group; their output is not waited for.
func run(ctx context.Context, path string, in []byte, limit time.Duration) ([]byte, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrTimeout)
	defer cancel()
	stdout := &bounded{most: MostOutput, over: func() { end(errTooLong) }}
	stderr := &bounded{most: mostStderr, over: func() {}}
	cmd := exec.CommandContext(ctx, path)
	cmd.Dir, cmd.Env = filepath.Dir(path), environ()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), stdout, stderr
	cmd.WaitDelay = lingering
	group(cmd)
	if err := cmd.Start(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, errors.Join(ErrMissing, err)
	}
	err := wait(cmd)
	switch cause := context.Cause(ctx); {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return stdout.kept.Bytes(), nil
	case errors.Is(cause, errTooLong):
		return nil, nonsense("more than %d bytes", MostOutput)
	case cause != nil:
		return nil, cause
	}
	why := tidy(stderr.kept.String(), 200)
	return stdout.kept.Bytes(), nonsense("it ended with %s, saying %q", tidy(err.Error(), 100), why)
}

// environ is all that a program inherits.
func environ() []string {
	env := []string{} // nil would be everything
	for _, key := range []string{"PATH", "HOME", "LANG"} {
		if value, ok := os.LookupEnv(key); ok {
			env = append(env, key+"="+value)
		}
	}
	return env
}

// bounded keeps the first bytes that are written to it. What is more is dropped, and told once.
type bounded struct {
	kept bytes.Buffer
	most int
	over func()
	told bool
}

// Write implements io.Writer. It takes everything, so that the writer learns of the bound by being ended.
func (b *bounded) Write(p []byte) (int, error) {
	fits := min(len(p), b.most-b.kept.Len())
	b.kept.Write(p[:fits])
	if fits < len(p) && !b.told {
		b.told = true
		b.over()
	}
	return len(p), nil
}
