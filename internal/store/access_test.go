package store_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/store"
	"haggle/market"
)

func TestBlocksAndNamesOutliveTheProgram(t *testing.T) {
	folder := t.TempDir()
	a, r := openAgent(t, filepath.Join(folder, "agent.db")), openRig(t, filepath.Join(folder, "rig.db"))
	ctx := t.Context()
	for _, s := range []interface {
		SaveBlock(ctx context.Context, b store.Block) error
		DropBlock(ctx context.Context, key market.Key) error
		Blocks(ctx context.Context) ([]store.Block, error)
	}{a, r} {
		must(t, s.SaveBlock(ctx, store.Block{Key: market.Key{2}, Why: "rude"}))
		must(t, s.SaveBlock(ctx, store.Block{Key: market.Key{1}, Until: 5}))
		must(t, s.SaveBlock(ctx, store.Block{Key: market.Key{2}, Why: "very rude", Until: 7}))
		must(t, s.SaveBlock(ctx, store.Block{Key: market.Key{3}}))
		must(t, s.DropBlock(ctx, market.Key{3}))
		must(t, s.DropBlock(ctx, market.Key{4}))
		got, err := s.Blocks(ctx)
		want := []store.Block{{Key: market.Key{1}, Until: 5}, {Key: market.Key{2}, Why: "very rude", Until: 7}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
	now := time.UnixMilli(9)
	must(t, a.GiveName(ctx, market.Key{1}, "attic", now))
	must(t, a.GiveName(ctx, market.Key{2}, "cellar", now))
	must(t, a.GiveName(ctx, market.Key{1}, "loft", now))
	must(t, a.GiveName(ctx, market.Key{2}, "", now))
	if err := a.GiveName(ctx, market.Key{3}, "loft", now); err == nil {
		t.Error("two keys have one name")
	}
	must(t, a.Close())
	got, err := openAgent(t, filepath.Join(folder, "agent.db")).GivenNames(ctx)
	if diff := cmp.Diff(map[market.Key]string{{1}: "loft"}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
