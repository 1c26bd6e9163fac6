package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/host"
	"haggle/internal/store"
	"haggle/market"
)

func TestACopyHoldsWhatWasThereAndNoSecrets(t *testing.T) {
	s := openRig(t, path(t))
	r := rigRecord(1)
	r.Lease.Job = market.JobRunning
	must(t, s.Create(t.Context(), r))
	must(t, s.Save(t.Context(), r.Lease, receiptOf(r, 1, 10)))
	to := path(t)
	made, err := s.Backup(t.Context(), to)
	must(t, err)
	data, err := os.ReadFile(to)
	must(t, err)
	if made.Path != to || made.Bytes != int64(len(data)) {
		t.Errorf("it says %v, the file has %d bytes", made, len(data))
	}
	if strings.Contains(string(data), "secret-token") {
		t.Error("the copy holds an environment's value")
	}
	info, err := os.Stat(to)
	must(t, err)
	if goruntime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v", info.Mode().Perm())
	}
	_, err = s.Backup(t.Context(), to)
	wantError(t, err, fs.ErrExist)
	if again, err := os.ReadFile(to); err != nil || string(again) != string(data) {
		t.Errorf("a copy was written over: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(to), "*")); len(left) != 1 {
		t.Errorf("beside the copy there are %v", left)
	}
	if _, err := s.Backup(t.Context(), filepath.Join(to, "under-a-file")); err == nil {
		t.Error("a copy was made where there is no folder")
	}
	c := openRig(t, to)
	got, err := c.Records(t.Context(), true)
	r.Env = nil
	if diff := cmp.Diff([]host.Record{r}, got); err != nil || diff != "" {
		t.Errorf("records of the copy: %v (-want +got):\n%s", err, diff)
	}
}

func TestACopyMadeUnderLoadIsOfOneMoment(t *testing.T) {
	const writers, receipts = 8, 60
	s := openRig(t, path(t))
	for n := range byte(writers) {
		must(t, s.Create(t.Context(), rigRecord(n)))
	}
	var group sync.WaitGroup
	for n := range byte(writers) {
		group.Go(func() {
			r := rigRecord(n)
			for seq := uint32(1); seq <= receipts; seq++ {
				r.Lease.Meter.BilledMs = int64(seq)
				if err := s.Save(t.Context(), r.Lease, receiptOf(r, seq, int64(seq))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	folder := t.TempDir()
	var copies []string
	for i := range 5 {
		made, err := s.Backup(t.Context(), filepath.Join(folder, string(rune('a'+i))))
		must(t, err)
		copies = append(copies, made.Path)
	}
	group.Wait()
	for _, c := range append(copies, "") {
		if c != "" {
			s = openRig(t, c)
		}
		for n := range byte(writers) {
			id := rigRecord(n).Lease.ID
			list, err := s.Receipts(t.Context(), id, 0)
			must(t, err)
			r, err := s.Record(t.Context(), id)
			must(t, err)
			if r.Lease.Meter.BilledMs != int64(len(list)) {
				t.Errorf("%s: the state of lease %d is of %d, there are %d receipts", c, n, r.Lease.Meter.BilledMs, len(list))
			}
		}
	}
}

func origin() store.Origin {
	return store.Origin{Network: network, Key: market.KeyOf(rigKey())}
}

func TestARestoredRigIsAnotherInstanceThatIsUnsure(t *testing.T) {
	p, to := path(t), path(t)
	s := openRig(t, p)
	before, err := s.Instance(t.Context())
	must(t, err)
	open, closed := rigRecord(1), rigRecord(2)
	must(t, s.Create(t.Context(), open))
	must(t, s.Save(t.Context(), open.Lease, receiptOf(open, 1, 10)))
	must(t, s.Create(t.Context(), closed))
	closed.Lease.Job, closed.Lease.Debt, closed.Lease.Gone = market.JobEnded, market.DebtFinal, true
	must(t, s.Save(t.Context(), closed.Lease))
	_, err = s.Backup(t.Context(), to)
	must(t, err)
	must(t, s.Save(t.Context(), open.Lease, receiptOf(open, 2, 20))) // what the copy does not know

	_, err = store.RestoreRig(t.Context(), to, p, origin())
	wantError(t, err, store.ErrLocked)
	must(t, s.Close())
	done, err := store.RestoreRig(t.Context(), to, p, origin())
	must(t, err)
	if done.Leases != 2 || done.Path != p {
		t.Errorf("it says %+v", done)
	}
	s = openRig(t, p)
	now, err := s.Instance(t.Context())
	must(t, err)
	if now == before || now != done.Instance {
		t.Errorf("the instance is %x, it was %x, and %x was said", now, before, done.Instance)
	}
	if list, err := s.Receipts(t.Context(), open.Lease.ID, 0); err != nil || len(list) != 1 {
		t.Errorf("%d receipts, %v, want the one of the copy", len(list), err)
	}
	for _, r := range []host.Record{open, closed} {
		got, err := s.Record(t.Context(), r.Lease.ID)
		if err != nil || got.Lease.Unsure == got.Lease.Closed() {
			t.Errorf("lease %s, closed %v, is unsure: %v, %v", r.Lease.ID.Short(), got.Lease.Closed(), got.Lease.Unsure, err)
		}
	}
	must(t, s.Close())
	previous := openRig(t, done.Previous)
	if list, err := previous.Receipts(t.Context(), open.Lease.ID, 0); err != nil || len(list) != 2 {
		t.Errorf("what was there has %d receipts, %v, want 2", len(list), err)
	}
	if same, err := previous.Instance(t.Context()); err != nil || same != before {
		t.Errorf("what was there has the instance %x, %v", same, err)
	}
}

func TestARestoredAgentKeepsItsLeases(t *testing.T) {
	p, to := path(t), path(t)
	a := openAgent(t, p)
	r := leaseRecord(1)
	must(t, a.Save(t.Context(), bidRecord(2)))
	must(t, a.Save(t.Context(), r))
	_, err := a.Backup(t.Context(), to)
	must(t, err)
	must(t, a.Close())
	_, err = store.RestoreAgent(t.Context(), to, p, origin())
	wantError(t, err, store.ErrOtherKey)
	done, err := store.RestoreAgent(t.Context(), to, filepath.Join(t.TempDir(), "new.db"), store.Origin{Network: network, Key: market.KeyOf(renterKey())})
	must(t, err)
	if done.Leases != 1 || done.Previous != "" {
		t.Errorf("it says %+v", done)
	}
	r.Env = nil
	if got, err := openAgent(t, done.Path).Record(t.Context(), r.Lease); err != nil || !cmp.Equal(r, got) {
		t.Errorf("record: %v, %s", err, cmp.Diff(r, got))
	}
}

func TestARefusedRestoreChangesNothing(t *testing.T) {
	p, to := path(t), path(t)
	s := openRig(t, to)
	must(t, s.Create(t.Context(), rigRecord(1)))
	must(t, s.Close())
	sound, err := os.ReadFile(to)
	must(t, err)
	must(t, openRig(t, p).Close())
	there, err := os.ReadFile(p)
	must(t, err)
	agent := path(t)
	must(t, openAgent(t, agent).Close())
	foreign, err := os.ReadFile(agent)
	must(t, err)
	newer := append([]byte(nil), sound...)
	newer[63] = 99 // the user version in the header
	for name, c := range map[string]struct {
		data   []byte
		origin store.Origin
		want   error
	}{
		"an empty file":        {nil, origin(), store.ErrDamaged},
		"half a file":          {sound[:len(sound)/2], origin(), store.ErrDamaged},
		"a text file":          {[]byte(strings.Repeat("not a database ", 500)), origin(), store.ErrDamaged},
		"an agent's database":  {foreign, origin(), store.ErrForeign},
		"a newer version's":    {newer, origin(), store.ErrNewerSchema},
		"another network's":    {sound, store.Origin{Network: "main", Key: origin().Key}, store.ErrOtherNetwork},
		"another rig's":        {sound, store.Origin{Network: network, Key: market.KeyOf(renterKey())}, store.ErrOtherKey},
		"a rig's without keys": {sound, store.Origin{Network: network}, store.ErrOtherKey},
	} {
		t.Run(name, func(t *testing.T) {
			from := path(t)
			must(t, os.WriteFile(from, c.data, 0o600))
			_, err := store.RestoreRig(t.Context(), from, p, c.origin)
			wantError(t, err, c.want)
			if left, err := os.ReadFile(p); err != nil || string(left) != string(there) {
				t.Errorf("the database was changed: %v", err)
			}
			if files, _ := filepath.Glob(p + "*"); len(files) != 2 {
				t.Errorf("there are %v, want the database and its lock", files)
			}
		})
	}
	if _, err := store.RestoreRig(t.Context(), p+".none", p, origin()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a copy that is not there: %v", err)
	}
}

func TestADamagedDatabaseGivesWayToACopy(t *testing.T) {
	p, to := path(t), path(t)
	s := openRig(t, p)
	must(t, s.Create(t.Context(), rigRecord(1)))
	_, err := s.Backup(t.Context(), to)
	must(t, err)
	must(t, s.Close())
	for _, end := range []string{"", "-wal", "-shm"} {
		must(t, os.WriteFile(p+end, []byte(strings.Repeat("garbage", 3000)), 0o600))
	}
	_, err = store.OpenRig(t.Context(), p)
	wantError(t, err, store.ErrDamaged)
	done, err := store.RestoreRig(t.Context(), to, p, origin())
	must(t, err)
	if list, err := openRig(t, p).Records(t.Context(), true); err != nil || len(list) != 1 {
		t.Errorf("%d leases, %v, want 1", len(list), err)
	}
	if kept, err := os.ReadFile(done.Previous); err != nil || !strings.HasPrefix(string(kept), "garbage") {
		t.Errorf("the damaged file was not kept: %v", err)
	}
}
