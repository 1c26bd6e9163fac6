package tui

import (
	"context"
	"runtime/debug"
	"time"

	tea "charm.land/bubbletea/v2"
)

// kit is what every part needs. Parts share one and do not change it.
type kit struct {
	Config
	look theme
	ctx  context.Context // of the program: what commands do ends with it
	stop context.CancelFunc
}

// asked is how long the agent may take for an answer. A bid and a log take as long as they need.
const asked = 20 * time.Second

// crashMsg is a panic that was caught in a command.
type crashMsg struct {
	value any
	stack []byte
}

// work makes a command. It runs beside Update and must not touch the model.
func (k *kit) work(do func(ctx context.Context) tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if r := recover(); r != nil {
				msg = crashMsg{r, debug.Stack()}
			}
		}()
		return do(k.ctx)
	}
}

// ask makes a command that asks the agent and waits for a bounded time.
func (k *kit) ask(do func(ctx context.Context) tea.Msg) tea.Cmd {
	return k.work(func(ctx context.Context) tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, asked)
		defer cancel()
		return do(ctx)
	})
}

// after makes a command that only waits.
func (k *kit) after(d time.Duration, msg tea.Msg) tea.Cmd {
	return k.work(func(ctx context.Context) tea.Msg {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return msg
		case <-ctx.Done():
			return nil
		}
	})
}
