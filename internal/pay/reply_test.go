package pay

import (
	"errors"
	"strings"
	"testing"
	"unicode"
)

// FuzzReply feeds what a program might write. Whatever passes keeps every bound that the rest of the house relies on.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"haggle_pay":1,"state":"settled","amount":1000000,"reference":"r-1","text":"t\n","qr":"q","request":"r"}`), true)
	f.Add([]byte(`{"haggle_pay":1,"settles":"hand","currencies":["USD"],"text":"\u001b[2J"}`), false)
	f.Add([]byte(`{"haggle_pay":1,"fee":5,"seconds":9}`), true)
	f.Add([]byte(`{"haggle_pay":1,"error":"no"}`), true)
	f.Add([]byte("{\"haggle_pay\":1,\"state\":\"waiting\",\"text\":\"\xff\xfe\"}{}"), false)
	f.Fuzz(func(t *testing.T, text []byte, payer bool) {
		r, err := parseReply(text)
		if err != nil {
			if !errors.Is(err, ErrNonsense) {
				t.Errorf("the error is %v", err)
			}
			return
		}
		side := Payee
		if payer {
			side = Payer
		}
		o := Order{Amount: 1_000_000}
		printable := func(text string, most int) {
			strange := strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
			if len(text) > most || strange {
				t.Errorf("%q passed", text)
			}
		}
		if a, err := r.answer(side, "status", o); err == nil {
			printable(a.Text, MostText)
			printable(a.QR, MostText)
			printable(a.Reference, MostReference)
			if a.Amount < 0 || a.Amount > MostAmount || payer && a.Amount > o.Amount || len(a.Request) > MostText {
				t.Errorf("%+v passed", a)
			}
		}
		if m, err := r.method("x"); err == nil {
			printable(m.Text, 200)
		}
		if q, err := r.quote(); err == nil && (q.Fee < 0 || q.Fee > MostAmount || q.Seconds < 0) {
			t.Errorf("%+v passed", q)
		}
	})
}
