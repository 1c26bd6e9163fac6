package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haggle/internal/pay"
	"haggle/internal/pay/paytest"
)

// TestMain is the program itself where it is started under the program's name: the tests start real processes.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "haggle-pay-hand" {
		main()
		return
	}
	os.Exit(m.Run())
}

func words() map[string]string {
	return map[string]string{"text": "Send {amount} {currency} to Ada, reference {reference}.", "qr": "pay:ada?a={amount}&r={reference}"}
}

func TestItIsAPaymentProgram(t *testing.T) {
	paytest.Run(t, paytest.Case{Path: paytest.Self(t, "haggle-pay-hand"), Network: "main", Currency: "EUR", Payee: words()})
}

func TestThePayerSeesItsOwnAmountFirstAndThenTheStrangersWords(t *testing.T) {
	o := pay.Order{ID: "ab-1", Method: "hand", Currency: "EUR", Amount: 1_500_000}
	asked, err := hand{}.Request(t.Context(), pay.Call{Side: pay.Payee, Order: o, Settings: words()})
	if err != nil {
		t.Fatal(err)
	}
	o.Request = asked.Request
	a, err := hand{}.Pay(t.Context(), pay.Call{Side: pay.Payer, Order: o})
	want := "Pay 1.50 EUR, and no more, with the reference " + asked.Reference + ".\nThe rig's owner writes:\nSend 1.50 EUR to Ada, reference " +
		asked.Reference + "."
	if err != nil || a.Text != want || a.QR != "pay:ada?a=1.50&r="+asked.Reference || a.State != pay.Waiting || a.Amount != 0 {
		t.Errorf("the payer is told %+v, %v", a, err)
	}
}

func TestAnOwnerWithoutWordsDoesNotOfferThisMethod(t *testing.T) {
	p, err := pay.New(pay.Config{Folders: []string{filepath.Dir(paytest.Self(t, "haggle-pay-hand"))}, Network: "main", Side: pay.Payee})
	if err != nil {
		t.Fatal(err)
	}
	if m := p.Methods(t.Context()); len(m) != 0 {
		t.Errorf("it offers %+v", m)
	}
	f := p.Survey(t.Context())
	var no *pay.RefusedError
	if len(f) != 1 || !errors.As(f[0].Err, &no) || !strings.Contains(no.Why, "text") {
		t.Errorf("its owner is told %+v", f)
	}
}

// The documentation shows calls and answers of this program, in turn.
func TestTheDocumentationSaysWhatTheProgramSays(t *testing.T) {
	text, err := os.ReadFile("../../docs/payments.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for i, part := range strings.Split(string(text), "```json\n") {
		if i > 0 {
			blocks = append(blocks, part[:strings.Index(part, "```")])
		}
	}
	if len(blocks) == 0 || len(blocks)%2 != 0 {
		t.Fatalf("there are %d blocks of JSON", len(blocks))
	}
	for i := 0; i < len(blocks); i += 2 {
		var out strings.Builder
		if err := pay.Serve(t.Context(), hand{}, strings.NewReader(blocks[i]), &out); err != nil {
			t.Fatal(err)
		}
		if out.String() != blocks[i+1] {
			t.Errorf("%sis answered with\n%s", blocks[i], out.String())
		}
	}
}
