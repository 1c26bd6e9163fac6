package pay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// call is what a program reads: one object on stdin.
type call struct {
	Version  int               `json:"haggle_pay"`
	Op       string            `json:"op"`
	Side     Side              `json:"side"`
	Network  string            `json:"network"`
	Method   string            `json:"method"`
	ID       string            `json:"id,omitempty"`
	Currency string            `json:"currency,omitempty"`
	Amount   int64             `json:"amount,omitempty"`
	Request  string            `json:"request,omitempty"`
	Settings map[string]string `json:"settings"`
}

// reply is what a program writes: one object on stdout. Which keys count depends on the call.
type reply struct {
	Version    int      `json:"haggle_pay"`
	Error      string   `json:"error,omitempty"`
	Settles    string   `json:"settles,omitempty"`
	Currencies []string `json:"currencies,omitempty"`
	Fee        int64    `json:"fee,omitempty"`
	Seconds    int64    `json:"seconds,omitempty"`
	State      State    `json:"state,omitempty"`
	Amount     int64    `json:"amount,omitempty"`
	Reference  string   `json:"reference,omitempty"`
	Text       string   `json:"text,omitempty"`
	QR         string   `json:"qr,omitempty"`
	Request    string   `json:"request,omitempty"`
}

// speak runs a program for one call and reads its answer. A program's own no is a RefusedError.
func (p *Programs) speak(ctx context.Context, path string, c call) (reply, error) {
	in, err := json.Marshal(c)
	if err != nil {
		return reply{}, fmt.Errorf("write the call: %w", err)
	}
	select {
	case p.running <- struct{}{}:
		defer func() { <-p.running }()
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
	limit := p.config.Quick
	if c.Op == "pay" {
		limit = p.config.Slow
	}
	begun := time.Now()
	out, err := run(ctx, path, in, limit)
	p.config.Log.Debug("payment program ended", "program", programName(c.Method), "op", c.Op, "id", c.ID,
		"ms", time.Since(begun).Milliseconds(), "err", err)
	// What a program says of itself counts more than how it ended: a script says no and exits with 1.
	r, parseErr := parseReply(out)
	if parseErr == nil && r.Error != "" && !errors.Is(err, ErrTimeout) {
		return reply{}, &RefusedError{Why: tidy(r.Error, MostText)}
	}
	if err != nil {
		return reply{}, err
	}
	return r, parseErr
}

func nonsense(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrNonsense}, args...)...)
}

// parseReply reads the one object that a program has written.
func parseReply(out []byte) (reply, error) {
	var r reply
	d := json.NewDecoder(bytes.NewReader(out))
	if err := d.Decode(&r); err != nil {
		return reply{}, nonsense("not the JSON that it should be: %s", tidy(err.Error(), 200))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return reply{}, nonsense("something follows its answer")
	}
	if r.Version != Version {
		return reply{}, nonsense("it speaks version %d, and this is %d", r.Version, Version)
	}
	return r, nil
}

func (r reply) method(name string) (Method, error) {
	if r.Settles != Instantly && r.Settles != ByHand {
		return Method{Name: name}, nonsense("it does not say how it settles")
	}
	if len(r.Currencies) > 32 {
		return Method{Name: name}, nonsense("it names too many currencies")
	}
	for _, c := range r.Currencies {
		if c == "" || len(c) > 16 || tidy(c, 16) != c {
			return Method{Name: name}, nonsense("it names a currency that is none")
		}
	}
	return Method{Name: name, Settles: r.Settles, Currencies: r.Currencies, Text: tidy(r.Text, 200)}, nil
}

func (r reply) quote() (Quote, error) {
	if r.Fee < 0 || r.Fee > MostAmount || r.Seconds < 0 || r.Seconds > 365*24*3600 {
		return Quote{}, nonsense("its quote is out of bounds")
	}
	return Quote{Fee: r.Fee, Seconds: r.Seconds}, nil
}

// answer checks what a program says of an order, and makes its words fit to be shown.
func (r reply) answer(side Side, op string, o Order) (Answer, error) {
	switch r.State {
	case Settled, Pending, Waiting, Failed, Unknown:
	default:
		return Answer{}, nonsense("it says state %q", tidy(string(r.State), 32))
	}
	switch {
	case r.Amount < 0 || r.Amount > MostAmount:
		return Answer{}, nonsense("its amount is out of bounds")
	case side == Payer && r.Amount > o.Amount:
		return Answer{}, nonsense("it sent more than the order")
	case r.State == Settled && r.Amount == 0:
		return Answer{}, nonsense("it is settled, and nothing was sent")
	case (r.State == Failed || r.State == Unknown) && r.Amount != 0:
		return Answer{}, nonsense("it did not come, and an amount was sent")
	case len(r.Reference) > MostReference || tidy(r.Reference, MostReference) != r.Reference:
		return Answer{}, nonsense("its reference is too long, or not printable")
	case len(r.Request) > MostText || !utf8.ValidString(r.Request) || len(r.QR) > MostText || tidy(r.QR, MostText) != r.QR:
		return Answer{}, nonsense("its request or its QR code is too long, or not printable")
	case op == "request" && r.Request == "":
		return Answer{}, nonsense("it asks for nothing")
	}
	return Answer{State: r.State, Amount: r.Amount, Reference: r.Reference, Text: tidy(r.Text, MostText), QR: r.QR, Request: r.Request}, nil
}

// tidy takes what could harm a terminal out of a text for people, and bounds it.
func tidy(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}
