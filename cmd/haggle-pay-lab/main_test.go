package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"haggle/internal/pay"
	"haggle/internal/pay/paytest"
)

// TestMain is the program itself where it is started under the program's name: the tests start real processes.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "haggle-pay-lab" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestItIsAPaymentProgram(t *testing.T) {
	bank := filepath.Join(t.TempDir(), "bank")
	paytest.Run(t, paytest.Case{
		Path: paytest.Self(t, "haggle-pay-lab"), Network: "lab-x", Currency: "USD",
		Payer: map[string]string{"bank": bank, "secret": "s"}, Payee: map[string]string{"bank": bank, "account": "rig-1"},
	})
}

// world is a bank with a payee and a payer.
type world struct {
	t    *testing.T
	path string
	bank string
}

func newWorld(t *testing.T) *world {
	return &world{t, paytest.Self(t, "haggle-pay-lab"), filepath.Join(t.TempDir(), "bank")}
}

// side returns the program with settings beside the bank: name, value, …
func (w *world) side(side pay.Side, settings ...string) *pay.Programs {
	w.t.Helper()
	all := map[string]string{"bank": w.bank}
	for i := 0; i < len(settings); i += 2 {
		all[settings[i]] = settings[i+1]
	}
	p, err := pay.New(pay.Config{
		Folders: []string{filepath.Dir(w.path)}, Network: "lab-x", Side: side, Quick: 5 * time.Second, Slow: 5 * time.Second,
		Settings: map[string]map[string]string{"lab": all},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// order returns an order that the payee of an account asks for.
func (w *world) order(n int, amount int64) pay.Order {
	w.t.Helper()
	o := pay.Order{ID: fmt.Sprintf("ab-%d", n), Method: "lab", Currency: "USD", Amount: amount}
	a, err := w.side(pay.Payee).Request(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	o.Request = a.Request
	return o
}

// fault switches a side's fault, or takes it away.
func (w *world) fault(side pay.Side, fault string) {
	w.t.Helper()
	path := filepath.Join(w.bank, "fault-"+string(side))
	err := errors.Join(os.MkdirAll(w.bank, 0o700), os.WriteFile(path, []byte(fault), 0o600))
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) refused(err error, why string) {
	w.t.Helper()
	var no *pay.RefusedError
	if !errors.As(err, &no) || !strings.Contains(no.Why, why) {
		w.t.Errorf("refused with %v, want a word of %q", err, why)
	}
}

func TestACapHoldsAgainstManyAtTheSameTime(t *testing.T) {
	w := newWorld(t)
	payer, payee := w.side(pay.Payer, "cap", "5"), w.side(pay.Payee)
	var orders []pay.Order
	for n := range 12 {
		orders = append(orders, w.order(n, 1_000_000))
	}
	var wait sync.WaitGroup
	for _, o := range orders {
		wait.Go(func() {
			if _, err := payer.Pay(t.Context(), o); err != nil {
				w.refused(err, "leaves 0.00 USD")
			}
		})
	}
	wait.Wait()
	came := int64(0)
	for _, o := range orders {
		a, err := payee.Status(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		came += a.Amount
	}
	if came != 5_000_000 {
		t.Errorf("a payer with a cap of 5 paid %s", pay.FormatAmount(came))
	}
}

func TestAProgramThatDiesWithTheMoneyTakenHasPaidOnce(t *testing.T) {
	w := newWorld(t)
	payer, payee := w.side(pay.Payer, "cap", "1"), w.side(pay.Payee)
	o := w.order(1, 1_000_000)
	w.fault(pay.Payer, "die")
	if _, err := payer.Pay(t.Context(), o); !errors.Is(err, pay.ErrNonsense) {
		t.Errorf("it died, and the error is %v", err)
	}
	w.fault(pay.Payer, "")
	if a, err := payer.Status(t.Context(), o); err != nil || a.State != pay.Settled || a.Amount != o.Amount {
		t.Errorf("status: %+v, %v", a, err)
	}
	// The cap is used up: a second transfer would be refused.
	if a, err := payer.Pay(t.Context(), o); err != nil || a.State != pay.Settled {
		t.Errorf("again: %+v, %v", a, err)
	}
	if a, err := payee.Status(t.Context(), o); err != nil || a.Amount != o.Amount {
		t.Errorf("the payee sees %+v, %v", a, err)
	}
}

func TestATransferThatWasAnnouncedIsMadeByTheNextOne(t *testing.T) {
	w := newWorld(t)
	b := &bank{dir: w.bank, account: "p1", most: 10_000_000}
	if err := os.MkdirAll(filepath.Join(w.bank, "accounts"), 0o700); err != nil {
		t.Fatal(err)
	}
	dead := transfer{ID: "a-1", Payer: "p1", Payee: "rig", Currency: "USD", Amount: 4_000_000, Due: 1}
	if err := writeJSON(b.bookPath(), book{map[string]int64{"USD": dead.Amount}, &dead}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.pay(transfer{ID: "a-2", Payer: "p1", Payee: "rig", Currency: "USD", Amount: 6_000_000}); err != nil {
		t.Fatal(err)
	}
	if made, ok, err := b.transfer("rig", "a-1"); err != nil || !ok || made != dead {
		t.Errorf("the announced transfer: %+v, %t, %v", made, ok, err)
	}
	if _, err := b.pay(transfer{ID: "a-3", Payer: "p1", Payee: "rig", Currency: "USD", Amount: 1}); err == nil {
		t.Error("the cap is used up, and it paid")
	}
}

func TestAnotherPayersTransferIsNotMineAndCostsMeNothing(t *testing.T) {
	w := newWorld(t)
	o := w.order(1, 1_000_000)
	if _, err := w.side(pay.Payer, "secret", "theirs").Pay(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	mine := w.side(pay.Payer, "secret", "mine", "cap", "1")
	_, err := mine.Pay(t.Context(), o)
	w.refused(err, "somebody else")
	if _, err := mine.Pay(t.Context(), w.order(2, 1_000_000)); err != nil {
		t.Errorf("what was not taken counts against the cap: %v", err)
	}
}

func TestFaultsDoWhatTheyAreNamedFor(t *testing.T) {
	w := newWorld(t)
	payer, payee := w.side(pay.Payer, "late", "1h"), w.side(pay.Payee)
	w.fault(pay.Payer, "lie")
	lied := w.order(1, 1_000_000)
	if a, err := payer.Pay(t.Context(), lied); err != nil || a.State != pay.Settled {
		t.Errorf("lie: %+v, %v", a, err)
	}
	if a, err := payee.Status(t.Context(), lied); err != nil || a.Amount != 0 || a.State != pay.Unknown {
		t.Errorf("the payee believes the lie: %+v, %v", a, err)
	}
	w.fault(pay.Payer, "late")
	late := w.order(2, 1_000_000)
	if a, err := payer.Pay(t.Context(), late); err != nil || a.State != pay.Pending || a.Amount != late.Amount {
		t.Errorf("late: %+v, %v", a, err)
	}
	if a, err := payee.Status(t.Context(), late); err != nil || a.State != pay.Pending || a.Amount != 0 {
		t.Errorf("what is late has come: %+v, %v", a, err)
	}
	w.fault(pay.Payee, "hang")
	hangs, err := pay.New(pay.Config{
		Folders: []string{filepath.Dir(w.path)}, Network: "lab-x", Side: pay.Payee, Quick: 300 * time.Millisecond,
		Settings: map[string]map[string]string{"lab": {"bank": w.bank}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hangs.Status(t.Context(), late); !errors.Is(err, pay.ErrTimeout) {
		t.Errorf("it hangs, and the error is %v", err)
	}
	w.fault(pay.Payee, "melt")
	_, err = payee.Status(t.Context(), late)
	w.refused(err, "no fault")
}

func TestPlayMoneyStaysInLabsAndPayeesCannotSpend(t *testing.T) {
	w := newWorld(t)
	o := w.order(1, 1_000_000)
	o.Network = "main"
	_, err := w.side(pay.Payer).Pay(t.Context(), o)
	w.refused(err, "lab-")
	o.Network = "lab-y"
	_, err = w.side(pay.Payee, "secret", "s").Request(t.Context(), o)
	w.refused(err, "only receives")
	o = w.order(2, 1_000_000)
	o.ID = "ab-3"
	_, err = w.side(pay.Payer).Pay(t.Context(), o)
	w.refused(err, "not for this order")
	for _, bad := range [][]string{{"bank", "bank"}, {"cap", "much"}, {"late", "soon"}} {
		_, err = w.side(pay.Payer, bad...).Pay(t.Context(), w.order(4, 1_000_000))
		w.refused(err, bad[0])
	}
}
