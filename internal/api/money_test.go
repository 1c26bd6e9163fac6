package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"haggle/internal/api"
	"haggle/internal/view"
	"haggle/market"
	"haggle/market/markettest"
)

// ledgerClient is what both clients have.
type ledgerClient interface {
	api.Money
	Evidence(ctx context.Context, id string) ([]byte, error)
}

// books are the steps that both programs answer.
func books(c ledgerClient) []step {
	f := new(fakeAgent)
	ctx := context.Background()
	ledger, _ := f.Ledger(ctx)
	ledger.Entries[0].Leases = []view.LedgerLease{}
	invoice, _ := f.Invoice(ctx, "an owner/ö?", "EUR")
	invoice.Lines, invoice.Payments = []view.InvoiceLine{}, []view.PaymentLine{}
	history, _ := f.History(ctx, "12D3")
	history.Paid = []view.Money{}
	backup, _ := f.Backup(ctx, "/a/b c")
	five := int64(5)
	return []step{
		{"ledger", func(ctx context.Context) (any, error) { return of(c.Ledger(ctx)) }, ledger},
		{"invoice an owner/ö? EUR", func(ctx context.Context) (any, error) { return of(c.Invoice(ctx, "an owner/ö?", "EUR")) }, invoice},
		{"history 12D3", func(ctx context.Context) (any, error) { return of(c.History(ctx, "12D3")) }, history},
		{"dispute abc 5 bill it stood still", func(ctx context.Context) (any, error) {
			return of(c.Dispute(ctx, "abc", view.DisputeRequest{TotalMicro: &five, Code: "bill", Words: "it stood still"}))
		}, disputes("abc")},
		{"decision abc 00ff", func(ctx context.Context) (any, error) { return of(c.Decision(ctx, "abc", []byte{0, 0xff})) }, disputes("abc")},
		{"disputes abc", func(ctx context.Context) (any, error) { return of(c.Disputes(ctx, "abc")) }, disputes("abc")},
		{"backup /a/b c", func(ctx context.Context) (any, error) { return of(c.Backup(ctx, "/a/b c")) }, backup},
		{"evidence abc", func(ctx context.Context) (any, error) { return of(c.Evidence(ctx, "abc")) }, []byte{0, 1, 0xff}},
	}
}

func TestMoneyOfAnAgentArrivesAndComesBack(t *testing.T) {
	f := &fakeAgent{}
	c, _ := serveAgent(t, f)
	five := int64(5)
	have := budget()
	have.Alerts = []view.Alert{}
	deputy := view.Deputy{Key: "12D3/ö", Name: "box", Serves: true, CapMicro: 7}
	promise := view.GuaranteeRequest{Rig: "a", Renter: "b", AmountMicro: 1 << 50, Currency: "USD", Until: 9}
	run(t, f.seen, append(books(c), []step{
		{"pay abc {Method:hand AmountMicro:5}", func(ctx context.Context) (any, error) {
			return of(c.PayLease(ctx, "abc", view.PayRequest{Method: "hand", AmountMicro: 5}))
		}, lease("abc", "running")},
		{"budgets", func(ctx context.Context) (any, error) { return of(c.Budgets(ctx)) }, []view.Budget{have}},
		{"budget USD 5 true", func(ctx context.Context) (any, error) {
			return of(c.SetBudget(ctx, view.BudgetRequest{Currency: "USD", DayMicro: &five}))
		}, have},
		{"deputies", func(ctx context.Context) (any, error) { return of(c.Deputies(ctx)) }, []view.Deputy{}},
		{fmt.Sprintf("deputy %+v", deputy), func(ctx context.Context) (any, error) { return of(c.AddDeputy(ctx, deputy)) }, deputy},
		{"no deputy 12D3/ö", func(ctx context.Context) (any, error) { return only(c.RemoveDeputy(ctx, "12D3/ö")) }, nil},
		{fmt.Sprintf("guarantee %+v", promise), func(ctx context.Context) (any, error) { return of(c.Guarantee(ctx, promise)) }, []byte{0, 0xff}},
		{"decide 01ff 5 so be it", func(ctx context.Context) (any, error) {
			return of(c.Decide(ctx, view.DecideRequest{Evidence: []byte{1, 0xff}, DisputeRequest: view.DisputeRequest{TotalMicro: &five, Words: "so be it"}}))
		}, []byte{0, 0xfe}},
	}...))
}

func TestMoneyOfARigArrivesAndComesBack(t *testing.T) {
	f := &fakeRig{}
	config := newConfig(t)
	serve(t, api.NewRigServer(config, f))
	c := api.DialRig(config.Socket)
	t.Cleanup(c.Close)
	run(t, f.seen, append(books(c), []step{
		{"confirm abc {Slice:3 AmountMicro:4 Reference:r}", func(ctx context.Context) (any, error) {
			return of(c.Confirm(ctx, "abc", view.Confirm{Slice: 3, AmountMicro: 4, Reference: "r"}))
		}, lease("abc", "running")},
	}...))
}

func TestMoneyThatIsOutOfBoundsNeverArrives(t *testing.T) {
	f, r := &fakeAgent{left: make(chan struct{})}, &fakeRig{}
	agent, rig := newConfig(t), newConfig(t)
	serve(t, api.NewAgentServer(agent, f))
	serve(t, api.NewRigServer(rig, r))
	for _, c := range []struct{ socket, method, path, body string }{
		{agent.Socket, "POST", "/v1/leases/a/pay", `{"amount_micro":-1}`},
		{agent.Socket, "POST", "/v1/leases/a/pay", `{"amount_micro":0.5}`},
		{agent.Socket, "POST", "/v1/leases/a/pay", `{"amount_micro":99999999999999999999}`},
		{agent.Socket, "PUT", "/v1/budgets", `{"currency":"DOLLARSANDCENTS"}`},
		{agent.Socket, "PUT", "/v1/budgets", `{}`},
		{agent.Socket, "PUT", "/v1/deputies/k", `{"cap_micro":-1}`},
		{agent.Socket, "POST", "/v1/guarantees", `{"rig_key":"a","renter_key":"b","amount_micro":0,"currency":"USD","until_ms":1}`},
		{agent.Socket, "POST", "/v1/leases/a/disputes", `{"total_micro":-1}`},
		{agent.Socket, "POST", "/v1/leases/a/disputes", `{"words":"` + strings.Repeat("w", 501) + `"}`},
		{agent.Socket, "POST", "/v1/leases/a/decision", `{"decision":"?"}`},
		{agent.Socket, "POST", "/v1/leases/a/decision", `{}`},
		{agent.Socket, "POST", "/v1/decisions", `{"total_micro":1}`},
		{rig.Socket, "POST", "/v1/leases/a/disputes", `{"code":"` + strings.Repeat("c", 33) + `"}`},
		{agent.Socket, "POST", "/v1/backup", `{"path":"here.db"}`},
		{agent.Socket, "GET", "/v1/owners/a/invoice?currency=DOLLARSANDCENTS", ""},
		{rig.Socket, "POST", "/v1/leases/a/confirm", `{"amount_micro":-5}`},
		{rig.Socket, "POST", "/v1/leases/a/confirm", `{"reference":"` + strings.Repeat("r", 129) + `"}`},
	} {
		answer, err := plain(t, c.socket).Do(request(t.Context(), t, c.method, c.path, c.body))
		if err != nil {
			t.Fatal(err)
		}
		var p view.Problem
		err = json.NewDecoder(answer.Body).Decode(&p)
		answer.Body.Close()
		if err != nil || answer.StatusCode/100 != 4 || p.Code != string(market.CodeBadRequest) {
			t.Errorf("%s %s %s: status %d, %+v, %v", c.method, c.path, c.body, answer.StatusCode, p, err)
		}
	}
	if calls := append(f.seen(), r.seen()...); len(calls) > 0 {
		t.Errorf("what arrived is %q", calls)
	}
}

// holder is a rig that has evidence of one lease.
type holder struct {
	fakeRig
	data []byte
}

func (h *holder) Evidence(context.Context, string) ([]byte, error) { return h.data, h.err }

func TestRedactedEvidenceIsTheSameWithPartsLeftOut(t *testing.T) {
	whole := markettest.Paid()
	h := &holder{data: whole.Encode()}
	config := newConfig(t)
	serve(t, api.NewRigServer(config, h))
	c := api.DialRig(config.Socket)
	t.Cleanup(c.Close)
	data, err := c.Redacted(t.Context(), "abc")
	if err != nil {
		t.Fatal(err)
	}
	e, err := market.DecodeEvidence(data)
	if err != nil || !e.LeavesOut(market.RedactedBid) || len(e.Bid) > 0 || !bytes.Equal(e.Lease, whole.Lease) {
		t.Errorf("redacted it leaves out %q, %v", e.Redacted, err)
	}
	h.data = []byte("no evidence")
	if _, err := c.Redacted(t.Context(), "abc"); err == nil {
		t.Error("what is no evidence was redacted")
	}
	if data, err := c.Evidence(t.Context(), "abc"); err != nil || string(data) != "no evidence" {
		t.Errorf("as it is, it is %q, %v", data, err)
	}
}
