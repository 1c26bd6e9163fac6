package pay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxCall bounds what a program of ours reads.
const maxCall = 256 << 10

// Call is what a payment program is asked, for programs that are written in Go.
type Call struct {
	Side     Side
	Order    Order
	Settings map[string]string
}

// Program is the inside of a payment program. An error is the program's no, and its text reaches people: nothing was done.
type Program interface {
	// Describe says what the program is. Its Name is not looked at.
	Describe(ctx context.Context, c Call) (Method, error)
	// Quote says what an order would cost beside its amount.
	Quote(ctx context.Context, c Call) (Quote, error)
	// Request says what the payer's program needs to know.
	Request(ctx context.Context, c Call) (Answer, error)
	// Pay pays an order, once.
	Pay(ctx context.Context, c Call) (Answer, error)
	// Status says how far an order is.
	Status(ctx context.Context, c Call) (Answer, error)
}

// Serve answers one call, from in to out. The error is one of writing: everything else is answered.
func Serve(ctx context.Context, p Program, in io.Reader, out io.Writer) error {
	r, err := serve(ctx, p, in)
	if err != nil {
		r = reply{Error: err.Error()}
	}
	r.Version = Version
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	_, err = out.Write(append(text, '\n'))
	return err
}

func serve(ctx context.Context, p Program, in io.Reader) (reply, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxCall+1))
	if err != nil || len(text) > maxCall {
		return reply{}, errors.New("the call did not arrive whole, or is too long")
	}
	var c call
	if err := json.Unmarshal(text, &c); err != nil {
		return reply{}, fmt.Errorf("the call is not the JSON that it should be: %w", err)
	}
	if c.Version != Version {
		return reply{}, fmt.Errorf("this program speaks version %d, and not %d", Version, c.Version)
	}
	if c.Side != Payee && c.Side != Payer {
		return reply{}, fmt.Errorf("there is no side %q", c.Side)
	}
	asked := Call{c.Side, Order{c.ID, c.Network, c.Method, c.Currency, c.Amount, c.Request}, c.Settings}
	if c.Op == "describe" {
		m, err := p.Describe(ctx, asked)
		return reply{Settles: m.Settles, Currencies: m.Currencies, Text: m.Text}, err
	}
	if err := asked.Order.check(); err != nil {
		return reply{}, err
	}
	if !c.Side.may(c.Op) {
		return reply{}, fmt.Errorf("a %s has no operation %q", c.Side, c.Op)
	}
	var a Answer
	switch c.Op {
	case "quote":
		q, err := p.Quote(ctx, asked)
		return reply{Fee: q.Fee, Seconds: q.Seconds}, err
	case "request":
		a, err = p.Request(ctx, asked)
	case "pay":
		a, err = p.Pay(ctx, asked)
	default:
		a, err = p.Status(ctx, asked)
	}
	return reply{State: a.State, Amount: a.Amount, Reference: a.Reference, Text: a.Text, QR: a.QR, Request: a.Request}, err
}
