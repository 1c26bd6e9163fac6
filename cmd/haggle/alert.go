package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
	"haggle/internal/view"
)

// Bounds of alerts.
const (
	alertTime  = 30 * time.Second // of one command
	alertQueue = 64               // alerts that wait for a slow command or address
)

type alertFlags struct {
	bell, once    bool
	exec, webhook string
}

func (f *alertFlags) register(c *cobra.Command, watch *bool) {
	flags := c.Flags()
	flags.BoolVar(watch, "watch", false, "list each change as it comes, until Ctrl-C")
	flags.BoolVar(&f.bell, "bell", false, "with --watch: ring the terminal's bell at each match")
	flags.StringVar(&f.exec, "exec", "", "with --watch: run this command at each match")
	flags.StringVar(&f.webhook, "webhook", "", "with --watch: send each match to this address")
	flags.BoolVar(&f.once, "once", false, "with --watch: end with 0 at the first match")
}

// alerts tells a person or a program of matches. Its goroutine runs from begin to end.
type alerts struct {
	p       *program
	bell    bool
	command []string
	hook    *webhook
	queue   chan view.OfferChange
	group   sync.WaitGroup
	full    bool // it was said that alerts are left out
}

// alerts makes what the flags ask for.
func (f *alertFlags) alerts(p *program) (*alerts, error) {
	a := &alerts{p: p, bell: f.bell, queue: make(chan view.OfferChange, alertQueue)}
	var err error
	if f.exec != "" {
		if a.command, err = splitCommand(f.exec); err != nil {
			return nil, cli.Usage("--exec: "+err.Error(), "write --exec 'notify-send haggle', or --exec 'sh -c \"…\"' for a shell")
		}
	}
	if f.webhook != "" {
		if a.hook, err = newWebhook(f.webhook); err != nil {
			return nil, cli.Usage("--webhook: "+err.Error(), "write an https address, or http on this machine")
		}
	}
	return a, nil
}

func (a *alerts) begin(ctx context.Context) {
	a.group.Go(func() {
		for change := range a.queue {
			if ctx.Err() != nil {
				return
			}
			if err := a.now(ctx, change); err != nil && ctx.Err() == nil {
				a.p.Say("%s", clean(err.Error()))
			}
		}
	})
}

// end waits for what has begun. What only waits is left out where the program was interrupted.
func (a *alerts) end() {
	close(a.queue)
	a.group.Wait()
}

// tell hands a match over, and leaves it out where too many wait.
func (a *alerts) tell(change view.OfferChange) {
	select {
	case a.queue <- change:
	default:
		if !a.full {
			a.full = true
			a.p.Say("alerts are slower than the market: some are left out")
		}
	}
}

// now tells of a match in every way that was asked for.
func (a *alerts) now(ctx context.Context, change view.OfferChange) error {
	text, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("alert: %w", err)
	}
	if a.bell {
		_, _ = io.WriteString(a.p.Err, "\a") // where stderr is closed nobody listens
	}
	var failed []error
	if a.command != nil {
		if err := a.run(ctx, change, text); err != nil {
			failed = append(failed, fmt.Errorf("--exec: %w", err))
		}
	}
	if a.hook != nil {
		if err := a.hook.send(ctx, text); err != nil {
			failed = append(failed, fmt.Errorf("--webhook: %w", err))
		}
	}
	return errors.Join(failed...)
}

// run runs the command with a change. Its output goes to stderr: stdout is the list's.
func (a *alerts) run(ctx context.Context, change view.OfferChange, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, alertTime)
	defer cancel()
	c := exec.CommandContext(ctx, a.command[0], a.command[1:]...)
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(string(text)+"\n"), a.p.Err, a.p.Err
	c.WaitDelay = time.Second
	o, whole := change.Offer, ""
	if o.Total != nil {
		whole = o.Total.Text
	}
	c.Env = append(os.Environ(),
		"HAGGLE_CHANGE="+clean(change.Change), "HAGGLE_OFFER="+clean(o.ID), "HAGGLE_RIG="+clean(o.Rig), "HAGGLE_GPU="+clean(o.Model),
		"HAGGLE_FREE="+strconv.Itoa(o.Free), "HAGGLE_PRICE="+o.Price.Text, "HAGGLE_TOTAL="+whole, "HAGGLE_CURRENCY="+clean(o.Price.Currency))
	err := c.Run()
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s has not ended in %s", a.command[0], alertTime)
	}
	return err
}

// splitCommand splits a command into words at spaces; single and double quotes keep a word together. Nothing else means anything.
func splitCommand(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, begun := rune(0), false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case unicode.IsSpace(r):
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if begun {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("no command is named")
	}
	return words, nil
}
