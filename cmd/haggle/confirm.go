package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"haggle/internal/cli"
)

// confirm asks a person, who must say yes. Without a person it is an error.
func (p *program) confirm(ctx context.Context, question string) error {
	if !isTTY(p.in) || !isTTY(p.Err) {
		return cli.Usage(strings.TrimSuffix(question, "?")+": nobody can be asked here", "--yes does it without asking")
	}
	_, _ = fmt.Fprintf(p.Err, "%s: %s [y/N] ", p.Program, question) // where stderr is closed nobody answers
	answers := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(io.LimitReader(p.in, 1024)).ReadString('\n')
		if err != nil {
			line = ""
		}
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case a := <-answers:
		if a == "y" || a == "yes" {
			return nil
		}
	}
	p.Say("nothing was changed")
	return cli.Exit(1)
}
