package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"haggle/internal/pay"
)

// bank is a folder that any number of programs use at the same time, and in which any of them may die at any moment:
//
//	accounts/NAME.json        what an account has spent, and a transfer that it is about to make
//	accounts/NAME.lock        held while that changes
//	payments/PAYEE/ID.json    one transfer; made once, never changed
type bank struct {
	dir     string
	account string // of this side
	most    int64  // that the account may spend in all, of each currency; millionths
	fault   string
	late    time.Duration // until a transfer arrives, with faultLate
}

// transfer is one payment.
type transfer struct {
	ID       string `json:"id"`
	Payer    string `json:"payer"`
	Payee    string `json:"payee"`
	Currency string `json:"currency"`
	Amount   int64  `json:"amount"` // millionths
	Due      int64  `json:"due_ms"` // when it arrives, Unix milliseconds
}

// book is what is kept of an account.
type book struct {
	Spent   map[string]int64 `json:"spent"`             // by currency, Pending in it
	Pending *transfer        `json:"pending,omitempty"` // written before the transfer is made, taken away afterwards
}

// pay makes a transfer, or finds that it is made.
func (b *bank) pay(t transfer) (transfer, error) {
	for _, dir := range []string{filepath.Join(b.dir, "accounts"), filepath.Dir(b.paymentPath(t.Payee, t.ID))} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return t, err
		}
	}
	unlock, err := lock(filepath.Join(b.dir, "accounts", b.account+".lock"))
	if err != nil {
		return t, fmt.Errorf("lock the account: %w", err)
	}
	defer unlock()
	k := book{Spent: map[string]int64{}}
	if err := readJSON(b.bookPath(), &k); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return t, err
	}
	if k.Pending != nil { // a program died here
		if _, err := b.finish(&k); err != nil {
			return t, err
		}
	}
	made, ok, err := b.transfer(t.Payee, t.ID)
	switch {
	case err != nil:
		return t, err
	case ok && (made.Payer != t.Payer || made.Currency != t.Currency || made.Amount != t.Amount):
		return t, errOther
	case ok:
		return made, nil
	case k.Spent[t.Currency]+t.Amount > b.most:
		left := max(0, b.most-k.Spent[t.Currency])
		return t, fmt.Errorf("the cap of this account leaves %s %s", pay.FormatAmount(left), t.Currency)
	}
	t.Due = time.Now().UnixMilli()
	if b.fault == faultLate {
		t.Due += b.late.Milliseconds()
	}
	k.Spent[t.Currency] += t.Amount
	k.Pending = &t
	if err := writeJSON(b.bookPath(), k); err != nil {
		return t, err
	}
	if won, err := b.finish(&k); err != nil || !won {
		return t, cmp.Or(err, errOther)
	}
	return t, nil
}

// errOther refuses to take a transfer for one that it is not.
var errOther = errors.New("under this order's id another amount was paid, or by somebody else")

// finish makes the transfer that a book announces. False: somebody else has made one of that name, and this one is taken back.
func (b *bank) finish(k *book) (bool, error) {
	t := *k.Pending
	err := placeJSON(b.paymentPath(t.Payee, t.ID), t)
	won := err == nil
	if errors.Is(err, fs.ErrExist) {
		made, _, readErr := b.transfer(t.Payee, t.ID)
		err, won = readErr, made == t
	}
	if err != nil {
		return false, err // the book still announces it
	}
	if !won {
		k.Spent[t.Currency] -= t.Amount
	}
	k.Pending = nil
	return won, writeJSON(b.bookPath(), *k)
}

// transfer reads a transfer. False: there is none.
func (b *bank) transfer(payee, id string) (transfer, bool, error) {
	var t transfer
	err := readJSON(b.paymentPath(payee, id), &t)
	if errors.Is(err, fs.ErrNotExist) {
		return t, false, nil
	}
	return t, err == nil, err
}

func (b *bank) bookPath() string { return filepath.Join(b.dir, "accounts", b.account+".json") }

func (b *bank) paymentPath(payee, id string) string {
	return filepath.Join(b.dir, "payments", payee, id+".json")
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return nil
}

// writeJSON replaces a file at once.
func writeJSON(path string, v any) error {
	temp, err := tempJSON(path, v)
	if err != nil {
		return err
	}
	defer os.Remove(temp) // gone, unless the next line fails
	return os.Rename(temp, path)
}

// placeJSON makes a file at once. The error is fs.ErrExist where there is one.
func placeJSON(path string, v any) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temp, err := tempJSON(path, v)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	return os.Link(temp, path)
}

func tempJSON(path string, v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
