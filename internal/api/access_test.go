package api_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/api"
	"haggle/internal/view"
	"haggle/market"
)

func TestWhoMayCallTravels(t *testing.T) {
	f, r := &fakeAgent{}, &fakeRig{}
	agent, _ := serveAgent(t, f)
	c := newConfig(t)
	serve(t, api.NewRigServer(c, r))
	rig := api.DialRig(c.Socket)
	t.Cleanup(rig.Close)
	key, err := market.ParseKey("12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		access interface {
			Blocked(ctx context.Context) ([]view.Blocked, error)
			Block(ctx context.Context, key market.Key, r view.BlockRequest) error
			Unblock(ctx context.Context, key market.Key) error
		}
		seen func() []string
	}{"agent": {agent, f.seen}, "rig": {rig, r.seen}} {
		list, err := c.access.Blocked(t.Context())
		if err != nil || len(list) != 2 || list[1].Until == nil || *list[1].Until != 7 {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
		if err := c.access.Block(t.Context(), key, view.BlockRequest{ForMs: 5, Why: "rude"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.access.Unblock(t.Context(), key); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := []string{"blocked", "block " + key.Short() + " {ForMs:5 Why:rude}", "unblock " + key.Short()}
		if diff := cmp.Diff(want, c.seen()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestGivenNamesTravel(t *testing.T) {
	f := &fakeAgent{}
	agent, _ := serveAgent(t, f)
	if n, err := agent.GiveName(t.Context(), "rig 1/x", "attic"); err != nil || n.Name != "attic" || n.Key != "rig 1/x" {
		t.Errorf("got %+v, %v", n, err)
	}
	if list, err := agent.GivenNames(t.Context()); err != nil || len(list) != 1 || list[0].Calls != "rig-1" {
		t.Errorf("got %+v, %v", list, err)
	}
	if diff := cmp.Diff([]string{"name rig 1/x attic", "names"}, f.seen()); diff != "" {
		t.Error(diff)
	}
}
