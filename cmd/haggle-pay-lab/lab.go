package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"haggle/internal/pay"
)

// defaultCap is what an account may spend in all of one currency, where nothing else is set.
const defaultCap = "1000"

// accountName and orderID are compiled once and never written to again. Both become names of files.
var (
	accountName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
	orderID     = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9-]{0,127}$`)
)

// lab implements pay.Program.
type lab struct{}

// request is what the payee's side wants the payer's to know.
type request struct {
	Account string `json:"account"`
	ID      string `json:"id"`
}

// Describe implements pay.Program.
func (lab) Describe(_ context.Context, c pay.Call) (pay.Method, error) {
	_, err := open(c)
	return pay.Method{Settles: pay.Instantly, Text: "play money of this lab"}, err
}

// Quote implements pay.Program.
func (lab) Quote(_ context.Context, c pay.Call) (pay.Quote, error) {
	b, err := open(c)
	if err != nil {
		return pay.Quote{}, err
	}
	b.misbehave()
	return pay.Quote{}, nil
}

// Request implements pay.Program.
func (lab) Request(_ context.Context, c pay.Call) (pay.Answer, error) {
	b, err := open(c)
	if err != nil {
		return pay.Answer{}, err
	}
	b.misbehave()
	text, err := json.Marshal(request{b.account, c.Order.ID})
	if err != nil {
		return pay.Answer{}, err
	}
	return pay.Answer{State: pay.Unknown, Reference: reference(b.account, c.Order.ID), Request: string(text)}, nil
}

// Pay implements pay.Program.
func (lab) Pay(_ context.Context, c pay.Call) (pay.Answer, error) {
	b, err := open(c)
	if err != nil {
		return pay.Answer{}, err
	}
	payee, err := payeeOf(c.Order)
	if err != nil {
		return pay.Answer{}, err
	}
	if b.fault == faultHang {
		b.misbehave()
	}
	if b.fault == faultLie {
		return pay.Answer{State: pay.Settled, Amount: c.Order.Amount, Reference: reference(payee, c.Order.ID)}, nil
	}
	paid, err := b.pay(transfer{ID: c.Order.ID, Payer: b.account, Payee: payee, Currency: c.Order.Currency, Amount: c.Order.Amount})
	if err != nil {
		return pay.Answer{}, err
	}
	b.misbehave()
	return paid.answer(c), nil
}

// Status implements pay.Program.
func (lab) Status(_ context.Context, c pay.Call) (pay.Answer, error) {
	b, err := open(c)
	if err != nil {
		return pay.Answer{}, err
	}
	payee := b.account
	if c.Side == pay.Payer {
		if payee, err = payeeOf(c.Order); err != nil {
			return pay.Answer{}, err
		}
	}
	b.misbehave()
	if b.fault == faultLie {
		return pay.Answer{State: pay.Settled, Amount: c.Order.Amount, Reference: reference(payee, c.Order.ID)}, nil
	}
	t, ok, err := b.transfer(payee, c.Order.ID)
	switch {
	case err != nil:
		return pay.Answer{}, err
	case ok && (t.Currency != c.Order.Currency || c.Side == pay.Payer && t.Payer != b.account):
		return pay.Answer{}, errors.New("this payment is another one: its currency or its payer is")
	case !ok:
		return pay.Answer{State: pay.Unknown}, nil
	}
	return t.answer(c), nil
}

// answer says how far a transfer is.
func (t transfer) answer(c pay.Call) pay.Answer {
	a := pay.Answer{State: pay.Settled, Amount: t.Amount, Reference: reference(t.Payee, t.ID)}
	if time.Now().UnixMilli() < t.Due {
		a.State = pay.Pending
		if c.Side == pay.Payee {
			a.Amount = 0
		}
	}
	return a
}

// payeeOf reads the account that is to be paid from what the payee's side asked for.
func payeeOf(o pay.Order) (string, error) {
	var r request
	if json.Unmarshal([]byte(o.Request), &r) != nil || !accountName.MatchString(r.Account) || r.ID != o.ID {
		return "", errors.New("what the payee asks for is not for this order, or not this program's")
	}
	return r.Account, nil
}

func reference(payee, id string) string {
	sum := sha256.Sum256([]byte(payee + "/" + id))
	return "lab-" + hex.EncodeToString(sum[:8])
}

// open reads a call's settings.
func open(c pay.Call) (*bank, error) {
	b := &bank{dir: c.Settings["bank"], fault: c.Settings["fault"], late: 5 * time.Second}
	secret, most := c.Settings["secret"], c.Settings["cap"]
	switch {
	case !strings.HasPrefix(c.Order.Network, "lab-"):
		return nil, errors.New("play money is for networks of labs, whose names begin with lab-")
	case !filepath.IsAbs(b.dir):
		return nil, errors.New("the setting bank must name a folder in full")
	case c.Side == pay.Payee && secret != "":
		return nil, errors.New("the setting secret is the right to spend, and a payee only receives: take it away")
	case c.Order.ID != "" && !orderID.MatchString(c.Order.ID):
		return nil, errors.New("the order's id is out of bounds")
	}
	if late := c.Settings["late"]; late != "" {
		d, err := time.ParseDuration(late)
		if err != nil {
			return nil, fmt.Errorf("the setting late is no duration: %q", late)
		}
		b.late = d
	}
	if c.Side == pay.Payee {
		if b.account = c.Settings["account"]; b.account == "" {
			b.account = "rig"
		}
	} else {
		// Who knows an account's name can pay into it; only who knows its secret can spend from it.
		sum := sha256.Sum256([]byte("haggle-pay-lab/" + secret))
		b.account = "p" + hex.EncodeToString(sum[:16])
	}
	if !accountName.MatchString(b.account) {
		return nil, errors.New("the setting account must match [a-z0-9][a-z0-9-]*")
	}
	if most == "" {
		most = defaultCap
	}
	var err error
	if b.most, err = pay.ParseAmount(most); err != nil {
		return nil, fmt.Errorf("the setting cap: %w", err)
	}
	return b, b.chooseFault(c.Side)
}
