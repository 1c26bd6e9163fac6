package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"haggle/internal/pay"
)

// Bounds of what an owner may write, so that the request fits once amounts and references are in it and JSON is around it.
const (
	mostText = 900
	mostQR   = 400
)

// hand implements pay.Program.
type hand struct{}

// request is what the payee's side wants the payer to see.
type request struct {
	Text      string `json:"text"`
	QR        string `json:"qr"`
	Reference string `json:"reference"`
}

// Describe implements pay.Program.
func (hand) Describe(_ context.Context, c pay.Call) (pay.Method, error) {
	m := pay.Method{Settles: pay.ByHand, Text: "you pay as the rig's owner asks, and the owner confirms"}
	if c.Side == pay.Payer {
		return m, nil
	}
	return m, check(c.Settings)
}

// Quote implements pay.Program. What it costs and how long it takes is between people.
func (hand) Quote(context.Context, pay.Call) (pay.Quote, error) {
	return pay.Quote{Seconds: 24 * 3600}, nil
}

// Request implements pay.Program.
func (hand) Request(_ context.Context, c pay.Call) (pay.Answer, error) {
	if err := check(c.Settings); err != nil {
		return pay.Answer{}, err
	}
	r := wanted(c)
	text, err := json.Marshal(r)
	if err != nil {
		return pay.Answer{}, err
	}
	if len(text) > pay.MostText {
		return pay.Answer{}, errors.New("the settings text and qr are too long")
	}
	return pay.Answer{State: pay.Waiting, Text: r.Text, QR: r.QR, Reference: r.Reference, Request: string(text)}, nil
}

// Pay implements pay.Program: it shows what to do.
func (hand) Pay(_ context.Context, c pay.Call) (pay.Answer, error) { return show(c.Order) }

// Status implements pay.Program. Only the owner's word settles, and that is the rig's affair.
func (hand) Status(_ context.Context, c pay.Call) (pay.Answer, error) {
	if c.Side == pay.Payer {
		return show(c.Order)
	}
	if err := check(c.Settings); err != nil {
		return pay.Answer{}, err
	}
	return pay.Answer{State: pay.Waiting, Reference: wanted(c).Reference}, nil
}

func check(settings map[string]string) error {
	switch {
	case settings["text"] == "":
		return errors.New("the setting text is missing: write there how you want to be paid, with {amount}, {currency} and {reference}")
	case len(settings["text"]) > mostText || len(settings["qr"]) > mostQR:
		return fmt.Errorf("the settings text and qr hold at most %d and %d bytes", mostText, mostQR)
	}
	return nil
}

// wanted fills an order into the owner's words.
func wanted(c pay.Call) request {
	o := c.Order
	sum := sha256.Sum256([]byte(o.ID))
	r := request{Reference: "HG-" + strings.ToUpper(hex.EncodeToString(sum[:5]))}
	fill := strings.NewReplacer("{amount}", pay.FormatAmount(o.Amount), "{currency}", o.Currency, "{reference}", r.Reference)
	r.Text, r.QR = fill.Replace(c.Settings["text"]), fill.Replace(c.Settings["qr"])
	return r
}

// show says to the payer what to do. The amount is the one that the payer's own agent agreed to, and comes first: the rest are
// the words of a stranger.
func show(o pay.Order) (pay.Answer, error) {
	var r request
	if err := json.Unmarshal([]byte(o.Request), &r); err != nil || r.Text == "" || r.Reference == "" {
		return pay.Answer{}, errors.New("what the payee asks for is not this program's")
	}
	text := fmt.Sprintf("Pay %s %s, and no more, with the reference %s.\nThe rig's owner writes:\n%s",
		pay.FormatAmount(o.Amount), o.Currency, r.Reference, r.Text)
	return pay.Answer{State: pay.Waiting, Text: text, QR: r.QR, Reference: r.Reference}, nil
}
