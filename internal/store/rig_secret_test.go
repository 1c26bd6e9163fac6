package store_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"haggle/internal/host"
	"haggle/market"
	"haggle/nvml/sim"
	"haggle/runtime/runtimetest"
)

// script is a renter that says what it was told to, message after message, and hears nothing but what it waits for.
type script struct {
	say   chan market.Message
	heard chan market.Message
}

func (s *script) Peer() market.Key { return market.KeyOf(renterKey()) }
func (s *script) Raw() host.Conn   { return nil }

func (s *script) Send(ctx context.Context, m market.Message) error {
	select {
	case s.heard <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *script) Receive(ctx context.Context) (market.Message, error) {
	select {
	case m := <-s.say:
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// until returns the first message of a type for which found says true.
func until[M market.Message](t *testing.T, s *script, found func(M) bool) M {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case m := <-s.heard:
			if m, ok := m.(M); ok && found(m) {
				return m
			}
		case <-late:
			t.Fatal("the rig does not say it")
		}
	}
}

// addImage makes an image without a command of its own: jobs name their program.
func addImage[C, I any](engine interface {
	AddImage(name string, config C) I
}, name string,
) {
	var none C
	engine.AddImage(name, none)
}

func TestASecretIsNeverInARigsFiles(t *testing.T) {
	const hidden = "hunter2-in-memory-only"
	p := path(t)
	db := openRig(t, p)
	cards, err := sim.New(sim.Config{Cards: []sim.CardConfig{{Profile: "RTX_4090", Count: 1}}, Serial: "test"})
	must(t, err)
	defer cards.Close()
	engine := runtimetest.NewFake(map[string]runtimetest.Program{"probe": runtimetest.Probe})
	defer engine.Shutdown()
	addImage(engine, "lab")
	begun, offered := time.Now(), make(chan struct{}, 16)
	rules := host.DefaultRules()
	rules.MinMs = 1000
	d, err := host.New(host.Config{
		Key: rigKey(), Network: network, Name: "rig", Store: db, Cards: cards, Runtime: engine, Rules: rules,
		Machine: host.Machine{CPU: "test", Kernel: "6.1", Threads: 4, Memory: 8 << 30, DiskFree: 200e9}, Salt: []byte("salt"),
		Prices: market.Prices{Currency: "USD", Slot: 1000}, Net: market.NetFacts{Reach: "loopback"},
		Clock: func() market.Instant {
			return market.Instant{Mono: time.Since(begun).Milliseconds() + 1, Wall: time.Now().UnixMilli()}
		},
		OffersChanged: func() { offered <- struct{}{} },
	})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- d.Run(ctx) }()
	for len(d.Offers()) == 0 {
		<-offered
	}
	o, sealed, err := market.OpenOffer(network, d.Offers()[0])
	must(t, err)
	job := market.Job{Image: o.Host.Images[0].Digest, Args: []string{"probe", "polite"}, Secrets: 1}
	job.EnvHash = market.Env{}.Hash(job.Salt)
	bid := market.Bid{
		Offer: sealed.Hash(), Rig: o.Rig, Renter: market.KeyOf(renterKey()), Owner: market.KeyOf(renterKey()), Count: 1, Model: "RTX_4090",
		Mode: market.ModeFirm, Prices: o.Prices, GoodTill: o.Expires, Job: job.Hash(), DurationMs: 3_600_000, Budget: 1_000_000,
		Limits:     market.Limits{UnsignedMs: o.Rules.IntervalMs, UnattendedMs: 600_000, Credit: o.Rules.Credit},
		IntervalMs: o.Rules.IntervalMs,
	}
	s := &script{say: make(chan market.Message, 8), heard: make(chan market.Message, 64)}
	go func() { ended <- d.ServeLease(ctx, s) }()
	s.say <- market.Hello{WallMs: time.Now().UnixMilli()}
	s.say <- market.BidMessage{Bid: market.SealBid(network, renterKey(), bid).Encode(), Offer: d.Offers()[0], Job: job}
	grant := until(t, s, func(market.GrantMessage) bool { return true })
	terms, err := market.DecodeSealed(grant.Lease)
	must(t, err)
	s.say <- market.AcceptMessage{
		Lease: terms.Sign(market.RoleRenter, renterKey()).Encode(), Secrets: []market.Secret{{Name: "token", Value: []byte(hidden)}},
	}
	until(t, s, func(m market.StatusMessage) bool { return m.State == market.JobRunning })
	s.say <- market.StopMessage{Kill: true}
	until(t, s, func(m market.StatusMessage) bool { return m.State == market.JobEnded })
	stop()
	must(t, <-ended)
	must(t, <-ended)
	for _, name := range []string{p, p + "-wal"} {
		data, err := os.ReadFile(name)
		must(t, err)
		if strings.Contains(string(data), hidden) {
			t.Errorf("%s holds a secret", name)
		}
		if name == p+"-wal" && len(data) == 0 {
			t.Error("nothing was written")
		}
	}
}
