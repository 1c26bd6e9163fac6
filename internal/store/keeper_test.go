package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"haggle/internal/store"
)

// names lists a folder.
func names(t *testing.T, folder string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	must(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestAKeeperKeepsTheNewestCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "backups")
		ctx, cancel := context.WithCancel(t.Context())
		made, broken := 0, false
		k := store.Keeper{Folder: folder, Name: "rig-", Backup: func(_ context.Context, path string) (store.Copy, error) {
			if broken {
				return store.Copy{}, errors.New("no room")
			}
			made++
			return store.Copy{}, os.WriteFile(path, []byte("copy"), 0o600)
		}}
		stopped := make(chan error, 1)
		go func() { stopped <- k.Run(ctx) }()
		pass := func(d time.Duration, want ...string) {
			t.Helper()
			time.Sleep(d) // virtual
			synctest.Wait()
			if got := names(t, folder); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
		// The virtual clock begins at midnight of the year 2000.
		pass(2*time.Minute, "rig-20000101-000100.db")
		must(t, os.WriteFile(filepath.Join(folder, "mine.db"), []byte("x"), 0o600))
		pass(24*time.Hour, "mine.db", "rig-20000101-000100.db", "rig-20000102-000100.db")
		pass(48*time.Hour, "mine.db", "rig-20000102-000100.db", "rig-20000103-000100.db", "rig-20000104-000100.db")
		broken = true
		pass(30*time.Hour, "mine.db", "rig-20000102-000100.db", "rig-20000103-000100.db", "rig-20000104-000100.db")
		broken = false
		pass(time.Hour, "mine.db", "rig-20000103-000100.db", "rig-20000104-000100.db", "rig-20000105-070100.db")
		cancel()
		must(t, <-stopped)
		before := made
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		must(t, os.WriteFile(filepath.Join(folder, "rig-20000105-073000.db"), nil, 0o600)) // a killed program's
		must(t, os.WriteFile(filepath.Join(folder, "rig-20000105-073000.db.part"), []byte("x"), 0o600))
		go func() { stopped <- k.Run(ctx) }()
		pass(22*time.Hour, "mine.db", "rig-20000103-000100.db", "rig-20000104-000100.db", "rig-20000105-070100.db",
			"rig-20000105-073000.db", "rig-20000105-073000.db.part")
		if made != before {
			t.Errorf("%d copies were made after a restart, before their time", made-before)
		}
		pass(2*time.Hour, "mine.db", "rig-20000104-000100.db", "rig-20000105-070100.db", "rig-20000106-070100.db")
		cancel()
		must(t, <-stopped)
	})
}
