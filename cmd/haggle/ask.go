package main

import (
	"context"
	"errors"

	"haggle/internal/api"
)

// ask sends one request to the agent. Where nobody answers it starts the agent and asks again; no request is made only to
// find that out.
func ask[T any](ctx context.Context, p *program, request func(*api.AgentClient) (T, error)) (T, error) {
	c, err := p.dial()
	if err != nil {
		var none T
		return none, err
	}
	answer, err := request(c)
	if errors.Is(err, api.ErrNotRunning) && ctx.Err() == nil {
		if err := p.startAgent(ctx); err != nil {
			var none T
			return none, err
		}
		answer, err = request(c)
	}
	p.greet(c)
	return answer, err
}

// dial returns the client of the agent of this home. Nothing is sent yet.
func (p *program) dial() (*api.AgentClient, error) {
	if p.client == nil {
		c, err := p.config()
		if err != nil {
			return nil, err
		}
		p.client = api.DialAgent(c.Paths.Socket)
	}
	return p.client, nil
}

// greet says once when the agent is of another version.
func (p *program) greet(c *api.AgentClient) {
	theirs := c.ServerVersion()
	if theirs == "" || theirs == p.version || p.greeted {
		return
	}
	p.greeted = true
	p.Say("the agent is haggle %s, this is %s (hint: `haggle agent stop`; the next command starts the new one)", clean(theirs), p.version)
}
