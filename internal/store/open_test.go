package store_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/store"
)

// raw opens a database past the store's rules.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", store.Source(path))
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// tables returns every statement that made a database's tables.
func tables(t *testing.T, path string) (list []string) {
	t.Helper()
	found, err := raw(t, path).QueryContext(t.Context(), `SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name`)
	must(t, err)
	defer found.Close()
	for found.Next() {
		var statement string
		must(t, found.Scan(&statement))
		list = append(list, statement)
	}
	must(t, found.Err())
	return list
}

func TestAMigratedDatabaseIsLikeAFreshOne(t *testing.T) {
	rig, agent := store.Steps()
	freshRig, freshAgent := path(t), path(t)
	must(t, openRig(t, freshRig).Close())
	must(t, openAgent(t, freshAgent).Close())
	for steps := 1; steps <= rig; steps++ {
		p := path(t)
		must(t, store.MakeOldRig(t.Context(), p, steps))
		must(t, openRig(t, p).Close())
		if diff := cmp.Diff(tables(t, freshRig), tables(t, p)); diff != "" {
			t.Errorf("rig's database from version %d (-fresh +migrated):\n%s", steps, diff)
		}
	}
	for steps := 1; steps <= agent; steps++ {
		p := path(t)
		must(t, store.MakeOldAgent(t.Context(), p, steps))
		must(t, openAgent(t, p).Close())
		if diff := cmp.Diff(tables(t, freshAgent), tables(t, p)); diff != "" {
			t.Errorf("agent's database from version %d (-fresh +migrated):\n%s", steps, diff)
		}
	}
}

func TestTwoDatabasesHaveTwoIds(t *testing.T) {
	one, err := openRig(t, path(t)).Instance(t.Context())
	must(t, err)
	two, err := openRig(t, path(t)).Instance(t.Context())
	must(t, err)
	if one == two {
		t.Errorf("both are %x", one)
	}
}

func TestRefusesASecondInstance(t *testing.T) {
	p := path(t)
	first := openRig(t, p)
	_, err := store.OpenRig(t.Context(), p)
	wantError(t, err, store.ErrLocked)
	if pid := strconv.Itoa(os.Getpid()); err == nil || !strings.Contains(err.Error(), "process "+pid) {
		t.Errorf("%v does not name process %s", err, pid)
	}
	must(t, first.Close())
	openRig(t, p)
}

func TestRefusesANewerSchema(t *testing.T) {
	p := path(t)
	must(t, openAgent(t, p).Close())
	_, known := store.Steps()
	_, err := raw(t, p).ExecContext(t.Context(), fmt.Sprintf("PRAGMA user_version = %d", known+1))
	must(t, err)
	_, err = store.OpenAgent(t.Context(), p)
	wantError(t, err, store.ErrNewerSchema)
}

func TestRefusesAnotherProgramsDatabase(t *testing.T) {
	p := path(t)
	must(t, openAgent(t, p).Close())
	_, err := store.OpenRig(t.Context(), p)
	wantError(t, err, store.ErrForeign)
	openAgent(t, p) // it was left as it was

	p = path(t)
	_, err = raw(t, p).ExecContext(t.Context(), `CREATE TABLE cookies (a)`)
	must(t, err)
	_, err = store.OpenAgent(t.Context(), p)
	wantError(t, err, store.ErrForeign)
}

func TestRefusesADamagedFile(t *testing.T) {
	whole := path(t)
	s := openRig(t, whole)
	for n := range byte(30) {
		must(t, s.Create(t.Context(), rigRecord(n)))
	}
	must(t, s.Close())
	sound, err := os.ReadFile(whole)
	must(t, err)
	middle := append([]byte(nil), sound...)
	for i := range 4096 {
		middle[2*4096+i] = 0x55
	}
	for name, data := range map[string][]byte{
		"a text file":          []byte(strings.Repeat("not a database ", 500)),
		"a page of garbage":    middle,
		"the second half gone": sound[:len(sound)/2],
	} {
		t.Run(name, func(t *testing.T) {
			p := path(t)
			must(t, os.WriteFile(p, data, 0o600))
			_, err := store.OpenRig(t.Context(), p)
			wantError(t, err, store.ErrDamaged)
			if err == nil || !strings.Contains(err.Error(), p) {
				t.Errorf("%v does not name the file", err)
			}
			if left, err := os.ReadFile(p); err != nil || string(left) != string(data) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
}

func TestAFileIsItsOwnersAlone(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("needs file modes")
	}
	p := path(t)
	must(t, os.WriteFile(p, nil, 0o644))
	s := openRig(t, p)
	must(t, s.Create(t.Context(), rigRecord(1)))
	files, err := filepath.Glob(p + "*")
	must(t, err)
	if len(files) != 4 {
		t.Errorf("got files %v, want the database, its log, its index and its lock", files)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", file, info.Mode().Perm())
		}
	}
}

func TestAnOddPathIsOnlyAPath(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("needs question marks in file names")
	}
	p := filepath.Join(t.TempDir(), "a ?_pragma=x#%41.db")
	must(t, openRig(t, p).Close())
	if _, err := os.Stat(p); err != nil {
		t.Error(err)
	}
}

func TestAFolderThatIsNotThereIsAnError(t *testing.T) {
	if _, err := store.OpenRig(t.Context(), filepath.Join(t.TempDir(), "none", "haggle.db")); err == nil {
		t.Error("opened a database in a folder that does not exist")
	}
}
