package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// maxReport bounds what a supervisor says of its start, in bytes.
const maxReport = 4096

// supervise starts the supervisor of a job and returns when the job runs. The channel is closed when the supervisor has
// ended.
func (e *Engine) supervise(ctx context.Context, dir folder) (<-chan struct{}, error) {
	report, said, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer said.Close()
	talk, err := os.OpenFile(dir.file("supervisor.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, errors.Join(err, report.Close())
	}
	defer talk.Close()
	args := slices.Concat(e.cfg.Command, []string{string(dir)})
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, errors.Join(err, report.Close())
	}
	cmd := &exec.Cmd{Path: path, Args: args, Dir: e.cfg.Root, Stdout: said, Stderr: talk, SysProcAttr: detached()}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, report.Close())
	}
	gone := make(chan struct{})
	go func() { // not in e.bg: it lives as long as the job
		defer close(gone)
		if err := cmd.Wait(); err != nil {
			e.cfg.Log.Debug("a supervisor ended", "job", string(dir), "err", err)
		}
	}()
	heard := make(chan error, 1)
	e.bg.Go(func() {
		defer report.Close()
		line, _ := bufio.NewReader(io.LimitReader(report, maxReport)).ReadString('\n')
		switch line = strings.TrimSpace(line); line {
		case reportOK:
			heard <- nil
		case "":
			heard <- errors.New("the supervisor died")
		default:
			heard <- fmt.Errorf("%s", line)
		}
	})
	_ = said.Close() // its copy in the supervisor is what counts
	select {
	case err := <-heard:
		return gone, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
