package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/market"
	"haggle/runtime"
)

const hidden = "hunter2-in-memory-only"

// secretly runs a test with a lease that has two secrets and is not signed yet.
func secretly(t *testing.T, test func(t *testing.T, r *rig, a *renter, engine *giving)) {
	t.Helper()
	engine := &giving{}
	inBubbleOf(t, func(r *rig) { engine.Fake, r.config.Runtime = r.engine, engine }, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.secrets = []market.Secret{{Name: "token", Value: []byte(hidden)}, {Name: "empty"}}
		a.order([]string{"probe", "polite"}, func(b *market.Bid, m *market.BidMessage) {
			m.Job.Secrets = 2
			b.Job = m.Job.Hash()
		})
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if len(r.jobs()) > 0 {
			t.Fatal("the job is made before its secrets are there")
		}
		test(t, r, a, engine)
	})
}

// stored is everything that a store was ever given, as text.
func (m *memoryStore) stored() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all strings.Builder
	for _, r := range m.records {
		fmt.Fprintf(&all, "%+v %q %q", r, market.EncodeState(r.Lease), market.EncodeState(r.Job))
	}
	return all.String()
}

func TestAJobGetsItsSecretsAndNobodyKeepsThem(t *testing.T) {
	secretly(t, func(t *testing.T, r *rig, a *renter, engine *giving) {
		a.accept()
		pass(10 * time.Second)
		a.wantState(market.JobRunning, "")
		want := map[string][]byte{"token": []byte(hidden), "empty": {}}
		if diff := cmp.Diff(want, engine.specs[0].Secrets); diff != "" {
			t.Error(diff)
		}
		if strings.Contains(r.store.stored(), hidden) {
			t.Error("the store holds a secret")
		}
		a.keep()
		a.say(market.ResumeMessage{})
		pass(2 * time.Second)
		a.wantState(market.JobRunning, "")
		if diff := cmp.Diff(want, engine.specs[len(engine.specs)-1].Secrets); diff != "" {
			t.Error(diff)
		}
		a.keep()
		a.hangUp()
		r.stop()
		r.start()
		pass(time.Second)
		a.connect()
		a.say(market.ResumeMessage{})
		pass(time.Second)
		a.wantDecline(market.OrderResume, market.CodeSecretsLost)
		a.say(market.AcceptMessage{Lease: a.signed(), Secrets: a.secrets})
		a.say(market.ResumeMessage{})
		pass(2 * time.Second)
		a.wantState(market.JobRunning, "")
		if diff := cmp.Diff(want, engine.specs[len(engine.specs)-1].Secrets); diff != "" {
			t.Error(diff)
		}
	})
}

func TestASignatureWithOtherSecretsThanWereSaidIsRefused(t *testing.T) {
	secret := func(n int, size int) []market.Secret {
		var list []market.Secret
		for i := range n {
			list = append(list, market.Secret{Name: fmt.Sprint("s", i), Value: bytes.Repeat([]byte{1}, size)})
		}
		return list
	}
	for name, secrets := range map[string][]market.Secret{
		"none":       nil,
		"fewer":      secret(1, 1),
		"more":       secret(3, 1),
		"too big":    secret(2, 25_000),
		"one twice":  {{Name: "a"}, {Name: "a"}},
		"a bad name": {{Name: "../a"}, {Name: "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			secretly(t, func(t *testing.T, r *rig, a *renter, _ *giving) {
				a.secrets = secrets
				a.accept()
				a.heard.Wait()
				wantCode(t, a.refused, market.CodeBadRecord)
				if l := r.lease(); l.Job != market.JobGranted {
					t.Errorf("job is %s", l.Job)
				}
			})
		})
	}
}

func TestSecretsThatARestartLostAreSentAgainOrTheLeaseFails(t *testing.T) {
	for name, again := range map[string]bool{"sent again": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			secretly(t, func(t *testing.T, r *rig, a *renter, engine *giving) {
				r.engine.SetDown(true)
				a.accept()
				pass(5 * time.Second)
				r.stop()
				r.engine.SetDown(false)
				r.start()
				pass(time.Second)
				a.connect()
				a.wantState(market.JobPreparing, "")
				if again {
					a.say(market.AcceptMessage{Lease: a.signed(), Secrets: a.secrets[:1]}) // another number does nothing
					a.say(market.AcceptMessage{Lease: a.signed(), Secrets: a.secrets})
					pass(5 * time.Second)
					a.wantState(market.JobRunning, "")
					if got := engine.specs[len(engine.specs)-1].Secrets["token"]; string(got) != hidden {
						t.Errorf("the secret is %q", got)
					}
					return
				}
				pass(55 * time.Second)
				a.wantState(market.JobPreparing, "")
				pass(10 * time.Second)
				a.wantState(market.JobEnded, market.ReasonPrepare)
				if s := a.status(); s.Code != market.CodeSecretsLost || s.Total != 0 || r.free() != 2 {
					t.Errorf("status %+v, %d slots free", s, r.free())
				}
			})
		})
	}
}

// forgetful is an engine that makes a job, which the store then does not hear of.
type forgetful struct {
	*giving
	store *memoryStore
}

func (f forgetful) Create(ctx context.Context, spec runtime.Spec) error {
	err := f.giving.Create(ctx, spec)
	f.store.breakWith(errors.New("disk full"))
	return err
}

func TestAJobThatWasMadeWithItsSecretsOutlivesARestart(t *testing.T) {
	secretly(t, func(t *testing.T, r *rig, a *renter, engine *giving) {
		r.stop()
		r.config.Runtime = forgetful{engine, r.store}
		r.start()
		a.connect()
		a.say(market.AcceptMessage{Lease: a.signed(), Secrets: a.secrets})
		pass(2 * time.Second)
		if l := r.lease(); l.Job != market.JobPreparing || l.Ready || len(r.jobs()) != 1 {
			t.Fatalf("job %s, ready %t, %d in the engine", l.Job, l.Ready, len(r.jobs()))
		}
		r.stop()
		made := len(engine.specs)
		r.store.breakWith(nil)
		r.config.Runtime = engine
		r.start()
		pass(2 * time.Second)
		a.connect()
		a.wantState(market.JobRunning, "")
		if len(engine.specs) != made {
			t.Error("the job was made again, without its secrets")
		}
	})
}
