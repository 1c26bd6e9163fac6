//go:build linux

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
)

// shop is a lab with a rig of the test's own that is paid ahead, and a receipt of each of its leases every second.
type shop struct {
	*lab
	own  *ownRig
	bank string
}

// newShop starts both. home is the rig's; tables are lines of TOML of its own, such as payment programs.
func newShop(t *testing.T, home string, tables ...string) *shop {
	t.Helper()
	l := newProcessLab(t, 1)
	s := &shop{lab: l, bank: filepath.Join(l.home, "bank")}
	if err := os.MkdirAll(s.bank, 0o700); err != nil {
		t.Fatal(err)
	}
	port, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		t.Fatal(err)
	}
	// The same port after a restart: a renter's agent comes back to it at once.
	knobs := fmt.Sprintf("listen = [\"/ip4/127.0.0.1/tcp/%d\"]\n", port.Addr().(*net.TCPAddr).Port)
	if err := port.Close(); err != nil {
		t.Fatal(err)
	}
	if len(tables) == 0 {
		tables = []string{fmt.Sprintf("pay.lab = {bank = %q, account = \"own\"}", s.bank)}
	}
	s.own = l.ownRig(t, home, knobs+strings.Join(tables, "\n"))
	awaitOffer(t, []string{"HAGGLE_HOME=" + l.home}, "own")
	return s
}

// order orders a job at the test's own rig, to be paid by a method.
func (s *shop) order(verb, method, lasts string, steps int, more ...string) []string {
	s.t.Helper()
	args := []string{verb, "--offer", "own", "--image", "lab", "--for", lasts, "--budget", "1.00", "--pay", method}
	args = append(args, more...)
	return append(args, "--", "train", "--checkpoint", filepath.Join(s.t.TempDir(), "ckpt.json"), "--step-time", "100ms", "--steps", strconv.Itoa(steps))
}

// bid orders a job and returns its lease.
func (s *shop) bid(args []string) string {
	s.t.Helper()
	return trim(s.haggle(args...).wants(0))
}

// fault has the lab's payment program misbehave on one side; "" ends that.
func (s *shop) fault(side, name string) {
	s.t.Helper()
	path := filepath.Join(s.bank, "fault-"+side)
	if err := os.WriteFile(path+".new", []byte(name), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil { // a program reads the one or the other
		s.t.Fatal(err)
	}
}

// awaitPaid waits until the rig has signed for so many payments of a lease.
func (s *shop) awaitPaid(lease string, payments int) view.Lease {
	s.t.Helper()
	var v view.Lease
	await(s.t, fmt.Sprintf("%d payments of lease %s", payments, lease), func() bool {
		v = s.own.lease(lease)
		return v.Pay != nil && v.Pay.Payments >= payments
	})
	return v
}

// awaitState waits until the job of a lease is in a state, as the rig sees it.
func (s *shop) awaitState(lease string, state market.JobState) view.Lease {
	s.t.Helper()
	var v view.Lease
	await(s.t, "state "+string(state)+" of lease "+lease, func() bool {
		v = s.own.lease(lease)
		return v.State == string(state)
	})
	return v
}

// transfer is what the bank of play money knows of a payment.
type transfer struct {
	ID     string `json:"id"`
	Payer  string `json:"payer"`
	Amount int64  `json:"amount"`
}

// transfers lists what the rig's account has been paid for a lease.
func (s *shop) transfers(lease string) []transfer {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.bank, "payments/own", lease+"-*.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	var list []transfer
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		var t transfer
		if err := json.Unmarshal(data, &t); err != nil {
			s.t.Fatal(err)
		}
		list = append(list, t)
	}
	return list
}

// settled waits until both sides have signed all of a lease, and the rig has signed for all that the bank has: then nothing of
// it is on its way. It wants both sides to hold the same bytes, and returns the final receipt.
func (s *shop) settled(lease string) view.Receipt {
	s.t.Helper()
	return settled(s.t, s.agent, s.own.api, []string{"HAGGLE_HOME=" + s.home}, lease, func() (sum int64) {
		for _, t := range s.transfers(lease) {
			sum += t.Amount
		}
		return sum
	})
}

// all is an amount that has come for a lease.
func all(micro int64) func() int64 { return func() int64 { return micro } }

// settled waits until an agent and a rig have signed all of a lease and as many payments, of which banked came through a
// payment program, and wants both to hold the same bytes and to tell the same of their account.
func settled(t *testing.T, agent *api.AgentClient, rig *api.RigClient, env []string, lease string, banked func() int64) view.Receipt {
	t.Helper()
	ctx := t.Context()
	var last view.Receipt
	await(t, "the final receipt and all payments, signed and known to both", func() bool {
		list, err := agent.Receipts(ctx, lease)
		mine, errMine := agent.Lease(ctx, lease)
		theirs, errTheirs := rigLease(t, rig, lease)
		if err != nil || errMine != nil || errTheirs != nil || len(list) == 0 || mine.Pay == nil || theirs.Pay == nil {
			return false
		}
		last = list[len(list)-1]
		return last.Kind == string(market.ReceiptFinal) && len(last.SignedBy) == 2 && theirs.Debt == string(market.DebtFinal) &&
			mine.Pay.Payments == theirs.Pay.Payments && mine.Pay.Paid == theirs.Pay.Paid && theirs.Pay.Paid.Micro >= banked()
	})
	wantSameEvidence(t, agent, rig, lease, banked())
	wantSameLedger(t, agent, rig)
	file := filepath.Join(t.TempDir(), "lease.evidence")
	start(t, env, "haggle", "export", lease, "-o", file).wants(0)
	start(t, env, "haggle", "verify", file).wants(0)
	return last
}

func rigLease(t *testing.T, rig *api.RigClient, id string) (view.Lease, error) {
	t.Helper()
	list, err := rig.Leases(t.Context(), true)
	if err != nil {
		return view.Lease{}, err
	}
	for _, v := range list {
		if v.ID == id {
			return v, nil
		}
	}
	return view.Lease{}, fmt.Errorf("the rig does not know lease %s", id)
}

// wantSameEvidence wants both sides' files of a lease to hold the same receipts and payments, byte for byte, and the payments
// that did not move from another lease to be what the bank has.
func wantSameEvidence(t *testing.T, agent *api.AgentClient, rig *api.RigClient, lease string, banked int64) {
	t.Helper()
	a, err := agent.Evidence(t.Context(), lease)
	if err != nil {
		t.Fatal(err)
	}
	b, err := rig.Evidence(t.Context(), lease)
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs := decode(t, a), decode(t, b)
	if j := market.Judge(b); j.Verdict != market.VerdictAgreed {
		t.Errorf("the rig's evidence is %s: %+v", j.Verdict, j.Checks)
	}
	if diff := cmp.Diff(mine.Receipts, theirs.Receipts); diff != "" {
		t.Errorf("the receipts of agent and rig differ:\n%s", diff)
	}
	if diff := cmp.Diff(payments(mine), payments(theirs)); diff != "" {
		t.Errorf("the payments of agent and rig differ:\n%s", diff)
	}
	var came int64
	seen := map[string]bool{}
	for _, p := range market.Judge(a).Payments {
		if p.Method == market.PayBalance {
			continue
		}
		if seen[p.Reference] {
			t.Errorf("two payments have the reference %s", p.Reference)
		}
		seen[p.Reference] = true
		came += int64(p.Amount)
	}
	if came != banked {
		t.Errorf("the rig has signed for %d, and the bank has %d", came, banked)
	}
}

func decode(t *testing.T, data []byte) market.Evidence {
	t.Helper()
	e, err := market.DecodeEvidence(data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// payments returns the sealed payments of a lease.
func payments(e market.Evidence) [][]byte {
	var list [][]byte
	for _, p := range e.Papers {
		if p.Kind == market.KindPayment {
			list = append(list, p.Sealed)
		}
	}
	return list
}

// wantSameLedger wants an agent and a rig to tell the same of what is between their owners.
func wantSameLedger(t *testing.T, agent *api.AgentClient, rig *api.RigClient) {
	t.Helper()
	self, err := rig.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	me, err := agent.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mine, err := agent.Ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := rig.Ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(account(mine, self.Network.Key), account(theirs, me.Network.Key)); diff != "" {
		t.Errorf("the ledgers of agent and rig differ:\n%s", diff)
	}
}

// account is what a ledger says of somebody, without what only one side can know.
func account(l view.Ledger, owner string) map[string]int64 {
	for _, e := range l.Entries {
		if e.Owner == owner {
			return map[string]int64{
				"used": e.Used.Micro, "signed": e.Signed.Micro, "paid": e.Paid.Micro, "owed": e.Owed.Micro,
				"balance": e.Balance.Micro, "unspent": e.Unspent.Micro, "disputed": e.Disputed.Micro, "leases": int64(len(e.Leases)),
			}
		}
	}
	return nil
}

// second makes the home of another renter. Its own line of TOML ends the table [pay.lab], in place of the lab's secret.
func (s *shop) second(line string) (env []string, agent *api.AgentClient) {
	s.t.Helper()
	home := shortDir(s.t)
	text, err := os.ReadFile(filepath.Join(s.home, "config.toml"))
	if err != nil {
		s.t.Fatal(err)
	}
	knobs, _, found := strings.Cut(string(text), "\nsecret = ")
	if !found {
		s.t.Fatalf("the lab's agent has no account:\n%s", text)
	}
	write(s.t, filepath.Join(home, "config.toml"), knobs+"\n"+line+"\n")
	paths, err := config.AgentPaths(home)
	if err != nil {
		s.t.Fatal(err)
	}
	env = []string{"HAGGLE_HOME=" + home}
	stopAgent(s.t, env)
	awaitOffer(s.t, env, "own")
	return env, api.DialAgent(paths.Socket)
}

// jobLog returns the bytes of a job's log file as the test's own rig keeps them.
func (s *shop) jobLog(lease string) string {
	files, _ := filepath.Glob(filepath.Join(s.own.home, "jobs/jobs", lease[:32]+"*", "log")) // the pattern is well formed
	if len(files) == 0 {
		return "" // not yet
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return ""
	}
	return string(text)
}

// trim returns the one word that a program printed.
func trim(p *program) string { return strings.TrimSpace(p.out.String()) }
