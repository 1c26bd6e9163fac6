//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
	"haggle/market/markettest"
)

// fakeRig is a daemon of two cards whose first has a lease, with the rules that the owner's commands rest on.
type fakeRig struct {
	api.Rig

	mu       sync.Mutex
	trusted  []view.Owner
	withheld map[int]string
	paid     int64 // millionths, confirmed
	ended    bool  // the lease of card 0
}

func ada() market.Key { return market.KeyOf(markettest.Private("ada")) }

func (f *fakeRig) Status(context.Context) (view.RigStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return view.RigStatus{
		Version: "1", PID: 7, Name: "attic", Network: view.Network{Name: "main", Ready: true, Peers: 3, Addrs: []string{}}, Engine: "containerd 1.6.20",
		Cards: 2, Free: 1, Prices: market.Prices{Currency: "USD", Slot: 250_000}, Bidders: market.BiddersTrusted, Trusted: f.trusted,
		Pays:      []market.PayMethod{{Name: "hand", Settles: market.SettlesByHand}},
		Credit:    view.MoneyLimit{Now: view.MoneyOf(1_250_000, "USD"), Most: view.MoneyOf(5_000_000, "USD")},
		Isolation: "runc", Protections: []string{"seccomp", "pids"}, Weak: []string{"user-namespace"}, Images: []string{"lab"},
		Leases: []view.Lease{{
			ID: strings.Repeat("cafe", 16), State: "stopping", Reason: "takeback", EndsBy: markettest.Now, Slots: 1, Model: "RTX_4090", Args: []string{},
			Spent: view.MoneyOf(4100, "USD"), Egress: true, In: 1_234_567_890, Out: 999, DiskFull: true, Renter: ada().String(),
		}},
		Warnings: []string{"the protection user-namespace does not hold: it is off"},
	}, nil
}

func (f *fakeRig) Cards(context.Context) ([]view.Card, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	limit := int64(300)
	return []view.Card{
		{Slot: 0, UUID: "GPU-5f1a", Model: "RTX_4090", MemoryGiB: 24, Health: "fit", Lease: strings.Repeat("cafe", 16), PowerLimitW: &limit, Passable: true, Withheld: f.withheld[0]},
		{Slot: 1, UUID: "GPU-77b0", Model: "RTX_4090", MemoryGiB: 24, Health: "fit", Why: "no description of it was found", Withheld: f.withheld[1]},
	}, nil
}

func (f *fakeRig) TrustedOwners(context.Context) ([]view.Owner, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.trusted), nil
}

func (f *fakeRig) Trust(_ context.Context, owner market.Key, t view.Trust) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.IndexFunc(f.trusted, func(o view.Owner) bool { return o.Key == owner.String() })
	if at < 0 {
		at = len(f.trusted)
		f.trusted = append(f.trusted, view.Owner{Key: owner.String(), Since: markettest.Now, Owes: view.MoneyOf(1_250_000, "USD")})
	}
	o := &f.trusted[at]
	if t.Name != nil {
		o.Name = *t.Name
	}
	if t.Guarantor != nil {
		o.Guarantor = *t.Guarantor
	}
	if t.CreditMicro != nil {
		o.Credit = view.MoneyLimit{Now: o.Owes, Most: view.MoneyOf(market.Micro(max(0, *t.CreditMicro)), "USD"), Unlimited: *t.CreditMicro < 0}
	}
	return nil
}

func (f *fakeRig) Ledger(context.Context) (view.Ledger, error) {
	owed := view.MoneyOf(1_250_000, "USD")
	return view.Ledger{Side: "rig", Entries: []view.LedgerEntry{{Owner: ada().String(), Name: "Ada", Currency: "USD", Used: owed, Signed: owed, Owed: owed}}}, nil
}

func (f *fakeRig) Invoice(context.Context, string, string) (view.Invoice, error) {
	due := view.MoneyOf(1_250_000, "USD")
	return view.Invoice{
		Payee: "me", Payer: ada().String(), Currency: "USD", At: markettest.Now, Total: due, Due: due, Payments: []view.PaymentLine{},
		Lines: []view.InvoiceLine{{Lease: strings.Repeat("cafe", 16), What: "slots", Quantity: "5 slot-hours", Rate: view.MoneyOf(250_000, "USD"), Amount: due}},
	}, nil
}

func (f *fakeRig) History(_ context.Context, owner string) (view.History, error) {
	return view.History{Owner: owner, Leases: 3, Hours: "5", Paid: []view.Money{}, Completed: 3}, nil
}

func (f *fakeRig) Evidence(context.Context, string) ([]byte, error) { return nil, nil }

func (f *fakeRig) Confirm(_ context.Context, lease string, c view.Confirm) (view.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.AmountMicro == 0 {
		return view.Lease{}, market.NewError(market.CodeNothingOwed, "what", "confirmed", "lease", lease)
	}
	f.paid += c.AmountMicro
	return view.Lease{ID: strings.Repeat("cafe", 16), Spent: view.MoneyOf(1_250_000, "USD"), Pay: &view.Pay{Paid: view.MoneyOf(market.Micro(f.paid), "USD")}}, nil
}

func (f *fakeRig) Dispute(_ context.Context, lease string, r view.DisputeRequest) (view.Disputes, error) {
	d, err := r.Signs(market.RoleRig, market.LeaseID{0xca, 0xfe}, market.Head{}, 1_250_000, 2_000_000, markettest.Now)
	return view.DisputesOf(d.Lease, []market.Dispute{d}, 2_000_000, "USD", lease == "cafe"), err
}

func (f *fakeRig) Decision(context.Context, string, []byte) (view.Disputes, error) {
	d := market.Dispute{By: market.RoleGuarantor, Code: "decided", Total: 1_000_000, Wall: markettest.Now}
	return view.DisputesOf(market.LeaseID{0xca, 0xfe}, []market.Dispute{d}, 2_000_000, "USD", true), nil
}

func (f *fakeRig) Disputes(context.Context, string) (view.Disputes, error) {
	return view.DisputesOf(market.LeaseID{0xca, 0xfe}, nil, 2_000_000, "USD", true), nil
}

func (f *fakeRig) Distrust(_ context.Context, owner market.Key) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.IndexFunc(f.trusted, func(o view.Owner) bool { return o.Key == owner.String() })
	if at < 0 {
		return market.NewError(market.CodeOwnerUnknown, "owner", owner.String())
	}
	f.trusted = slices.Delete(f.trusted, at, at+1)
	return nil
}

func (f *fakeRig) Takeback(ctx context.Context, card string, dryRun bool) (view.Takeback, error) {
	slot, err := f.slot(ctx, card)
	if err != nil {
		return view.Takeback{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	v := view.Takeback{Slot: slot.Slot, UUID: slot.UUID, Model: slot.Model, Done: !dryRun}
	if slot.Slot == 0 && !f.ended {
		v.Lease, v.Renter, v.State, v.Slots = slot.Lease, ada().String(), "running", []int{0}
		v.NoticeMs, v.EndsBy = 120_000, markettest.Now+120_000
		v.Earned, v.Penalty, v.Forgone = view.MoneyOf(420_000, "USD"), view.MoneyOf(8_333, "USD"), view.MoneyOf(1_580_000, "USD")
	}
	if !dryRun {
		f.withheld[slot.Slot], f.ended = "taken back by the owner", true
	}
	return v, nil
}

func (f *fakeRig) Giveback(ctx context.Context, card string) error {
	slot, err := f.slot(ctx, card)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.withheld, slot.Slot)
	return nil
}

func (f *fakeRig) slot(ctx context.Context, name string) (view.Card, error) {
	cards, err := f.Cards(ctx)
	for _, c := range cards {
		if fmt.Sprint(c.Slot) == name || strings.HasPrefix(c.UUID, name) {
			return c, nil
		}
	}
	if err == nil {
		err = market.NewError(market.CodeCardUnknown, "card", name)
	}
	return view.Card{}, err
}

// says is a person who is there and says one thing, or nobody.
type says struct {
	text *strings.Reader
	here bool
}

func (s says) there() bool                { return s.here }
func (s says) Read(p []byte) (int, error) { return s.text.Read(p) }

// shell runs commands of haggled against a fake daemon of a home of its own.
type shell struct {
	t      *testing.T
	answer string // what the person says; "" is nobody
	out    string
	talk   string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	home, err := os.MkdirTemp("/tmp", "hg") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	t.Setenv("HAGGLED_HOME", home)
	paths, err := config.RigPaths(home)
	if err != nil {
		t.Fatal(err)
	}
	server := api.NewRigServer(api.Config{Socket: paths.Socket, Version: "1"}, &fakeRig{withheld: map[int]string{}})
	if err := server.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &shell{t: t}
}

// run runs a command and wants its exit code.
func (s *shell) run(code int, args ...string) {
	s.t.Helper()
	var out, talk bytes.Buffer
	p := &program{
		Terminal: cli.Terminal{Program: "haggled", Out: &out, Err: &talk}, version: "1", person: says{strings.NewReader(s.answer), s.answer != ""},
	}
	got := p.run(s.t.Context(), args)
	s.out, s.talk = out.String(), talk.String()
	if got != code {
		s.t.Errorf("haggled %s: code %d, want %d\n%s%s", strings.Join(args, " "), got, code, s.out, s.talk)
	}
}

// wants checks what stands in an output.
func (s *shell) wants(output string, parts ...string) {
	s.t.Helper()
	for _, part := range parts {
		if !strings.Contains(output, part) {
			s.t.Errorf("there is no %q in:\n%s", part, output)
		}
	}
}
