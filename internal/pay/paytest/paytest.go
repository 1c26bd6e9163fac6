// Package paytest is what every payment program must do. A program that passes Run may be given to strangers.
package paytest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"haggle/internal/pay"
)

// Case is a program and what it is tried with. Both sides must be able to pay each other at once, in any amount up to 5 units.
type Case struct {
	Path     string            // of the program, haggle-pay-NAME
	Network  string            // of the orders
	Currency string            // of the orders
	Payer    map[string]string // its settings
	Payee    map[string]string // its settings
}

// Self copies the running test program and returns the path of the copy. The program's TestMain must call main where it finds
// itself started under that name: so a test starts real processes of the program that it tests.
func Self(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// sides are the program as both ends have it.
type sides struct {
	Case
	method       string
	payer, payee *pay.Programs
	last         int // order
}

// Run tries a program.
func Run(t *testing.T, c Case) {
	s := &sides{Case: c, method: strings.TrimPrefix(strings.TrimSuffix(filepath.Base(c.Path), ".exe"), "haggle-pay-")}
	s.payer, s.payee = s.programs(t, pay.Payer, c.Payer), s.programs(t, pay.Payee, c.Payee)
	t.Run("it says the same of itself on both sides", s.describes)
	t.Run("the same request has the same answer", s.asksAgain)
	t.Run("an order that nobody paid is not settled", s.unpaid)
	t.Run("an order is paid once, however often", s.paysOnce)
	t.Run("an order that is paid at the same time by many is paid once", s.paysOnceInARush)
	t.Run("one order's money is not another's", s.apart)
	t.Run("a payee cannot pay and a payer cannot ask", s.oneSide)
	t.Run("what is no call is answered with an error", s.malformed)
}

func (s *sides) programs(t *testing.T, side pay.Side, settings map[string]string) *pay.Programs {
	t.Helper()
	p, err := pay.New(pay.Config{
		Folders: []string{filepath.Dir(s.Path)}, Network: s.Network, Side: side,
		Settings: map[string]map[string]string{s.method: settings},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// order makes a new order.
func (s *sides) order(amount int64) pay.Order {
	s.last++
	return pay.Order{ID: strings.Repeat("ab", 32) + "-" + strconv.Itoa(s.last), Method: s.method, Currency: s.Currency, Amount: amount}
}

// asked makes a new order with the payee's request in it.
func (s *sides) asked(t *testing.T, amount int64) pay.Order {
	t.Helper()
	o := s.order(amount)
	a, err := s.payee.Request(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Request = a.Request
	return o
}

// byHand tells whether a person settles this method.
func (s *sides) byHand(t *testing.T) bool {
	t.Helper()
	for _, m := range s.payee.Methods(t.Context()) {
		if m.Name == s.method {
			return m.Settles == pay.ByHand
		}
	}
	t.Fatal("the payee has no such method")
	return false
}

func (s *sides) describes(t *testing.T) {
	find := func(p *pay.Programs) pay.Method {
		for _, f := range p.Survey(t.Context()) {
			if f.Method.Name == s.method {
				if f.Err != nil {
					t.Fatal(f.Err)
				}
				return f.Method
			}
		}
		t.Fatalf("%s is not found", s.method)
		return pay.Method{}
	}
	payer, payee := find(s.payer), find(s.payee)
	if payer.Settles != payee.Settles || !slices.Equal(payer.Currencies, payee.Currencies) {
		t.Errorf("the payer's is %+v, the payee's is %+v", payer, payee)
	}
}

func (s *sides) asksAgain(t *testing.T) {
	o := s.order(1_000_000)
	first, err := s.payee.Request(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if again, err := s.payee.Request(t.Context(), o); err != nil || again != first {
			t.Errorf("first %+v, then %+v, %v", first, again, err)
		}
	}
	if first.State == pay.Settled || first.Amount != 0 {
		t.Errorf("asking says that something was paid: %+v", first)
	}
}

func (s *sides) unpaid(t *testing.T) {
	o := s.asked(t, 1_000_000)
	if _, err := s.payer.Quote(t.Context(), o); err != nil {
		t.Errorf("quote: %v", err)
	}
	for _, p := range []*pay.Programs{s.payer, s.payee} {
		if a, err := p.Status(t.Context(), o); err != nil || a.State == pay.Settled || a.Amount != 0 {
			t.Errorf("status: %+v, %v", a, err)
		}
	}
}

// arrived wants what the payee sees of an order to be so much, or a person's word to be wanted.
func (s *sides) arrived(t *testing.T, o pay.Order) {
	t.Helper()
	a, err := s.payee.Status(t.Context(), o)
	switch {
	case err != nil:
		t.Error(err)
	case s.byHand(t):
		if a.State != pay.Waiting || a.Amount != 0 {
			t.Errorf("a program that settles by hand says %+v", a)
		}
	case a.State != pay.Settled || a.Amount != o.Amount:
		t.Errorf("the payee sees %+v of %d", a, o.Amount)
	}
}

func (s *sides) paysOnce(t *testing.T) {
	o := s.asked(t, 2_500_000)
	first, err := s.payer.Pay(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if again, err := s.payer.Pay(t.Context(), o); err != nil || again.Amount != first.Amount || again.Reference != first.Reference {
			t.Errorf("first %+v, then %+v, %v", first, again, err)
		}
	}
	if s.byHand(t) && (first.State != pay.Waiting || first.Text == "") {
		t.Errorf("a person is not told what to do: %+v", first)
	}
	s.arrived(t, o)
	if a, err := s.payer.Status(t.Context(), o); err != nil || a.Amount != first.Amount {
		t.Errorf("the payer's status is %+v, %v", a, err)
	}
}

func (s *sides) paysOnceInARush(t *testing.T) {
	o := s.asked(t, 1_250_000)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, err := s.payer.Pay(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	s.arrived(t, o)
}

func (s *sides) apart(t *testing.T) {
	one, other := s.asked(t, 1_000_000), s.asked(t, 1_000_000)
	if _, err := s.payer.Pay(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if a, err := s.payee.Status(t.Context(), other); err != nil || a.State == pay.Settled || a.Amount != 0 {
		t.Errorf("nobody paid it: %+v, %v", a, err)
	}
}

// refuses wants a call to be answered with an error.
func (s *sides) refuses(t *testing.T, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.Path)
	cmd.Stdin = strings.NewReader(text)
	out, _ := cmd.Output() // its exit code is free
	var r struct {
		Version int    `json:"haggle_pay"`
		Error   string `json:"error"`
	}
	if err := json.Unmarshal(bytes.TrimSpace(out), &r); err != nil || r.Version != pay.Version || r.Error == "" {
		t.Errorf("%s is answered with %q", text, out)
	}
}

func (s *sides) oneSide(t *testing.T) {
	o := s.asked(t, 1_000_000)
	for _, c := range []struct {
		op, side string
		settings map[string]string
	}{{"pay", "payee", s.Payee}, {"quote", "payee", s.Payee}, {"request", "payer", s.Payer}} {
		text, err := json.Marshal(map[string]any{
			"haggle_pay": pay.Version, "op": c.op, "side": c.side, "network": s.Network, "method": s.method, "settings": c.settings,
			"id": o.ID, "currency": o.Currency, "amount": o.Amount, "request": o.Request,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.refuses(t, string(text))
	}
	if a, err := s.payee.Status(t.Context(), o); err != nil || a.State == pay.Settled {
		t.Errorf("it was paid: %+v, %v", a, err)
	}
}

func (s *sides) malformed(t *testing.T) {
	for _, text := range []string{
		"", "nothing", "[]", `{"haggle_pay":2,"op":"describe","side":"payee"}`, `{"haggle_pay":1,"op":"steal","side":"payer"}`,
		`{"haggle_pay":1,"op":"pay","side":"payer","method":"x","id":"a-1","currency":"USD","amount":-1}`,
		`{"haggle_pay":1,"op":"pay","side":"payer","method":"x","id":"a-1","currency":"USD","amount":1.5}`,
		`{"haggle_pay":1,"op":"pay","side":"payer","method":"x","id":"../../a","currency":"USD","amount":1}`,
		`{"haggle_pay":1,"op":"status","side":"thief","method":"x","id":"a-1","currency":"USD","amount":1}`,
	} {
		s.refuses(t, text)
	}
}
