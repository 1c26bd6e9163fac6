package main

import (
	"errors"

	"haggle/internal/api"
	"haggle/internal/assemble/agent"
	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/market"
)

// hinted is a failure of our own with what to do about it.
func hinted(class market.Class, message, hint string) error {
	return &cli.Hinted{Class: class, Message: message, Hint: hint}
}

// sentence puts an error into one sentence, for talk.
func sentence(err error) string {
	var ours *cli.Hinted
	if errors.As(err, &ours) {
		return clean(ours.Message)
	}
	return clean(market.Explain(err).Message)
}

// explain puts the errors of our own parts into one sentence and a hint.
func explain(err error) (market.Explanation, bool) {
	var knob *config.Error
	switch {
	case errors.As(err, &knob):
		return market.Explanation{Message: err.Error(), Hint: knob.Hint, Class: market.ClassUsage}, true
	case errors.Is(err, api.ErrNotRunning):
		return market.Explanation{Message: "the agent is not running", Hint: "`haggle agent run` shows why it does not start", Class: market.ClassUnreachable}, true
	case errors.Is(err, api.ErrLost):
		return market.Explanation{Message: "the agent went away before it had answered", Hint: "nothing is lost: run the command again, the agent is started anew", Class: market.ClassUnreachable}, true
	}
	return agent.Explain(err)
}
