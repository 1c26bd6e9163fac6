//go:build linux

package remote

import (
	"fmt"
	"sync"
	"time"

	"haggle/runtime"
)

// Limits bounds what the daemon can have of the helper. A zero is its default.
type Limits struct {
	Jobs        int   // that the engine keeps, ended ones too; default 256
	Images      int   // names of images; default 64
	ImageBytes  int64 // one archive; default 64 GiB
	ImagesBytes int64 // all images as packed; default 512 GiB
	Connections int   // open at a time; default 256
	Calls       int   // at work at a time, beside streams; more wait; default 64
	Streams     int   // logs being read at a time; more are refused; default 128
	Watches     int   // at a time; more are refused; default 8
	Paths       int   // into jobs, open at a time, not counted as connections; more are refused; default 1024

	ImageIdle time.Duration // without a byte of an archive that is being sent, it is given up; default 1 min
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.Jobs, 256)
	setDefault(&l.Images, 64)
	setDefault(&l.ImageBytes, 64<<30)
	setDefault(&l.ImagesBytes, 512<<30)
	setDefault(&l.Connections, 256)
	setDefault(&l.Calls, 64)
	setDefault(&l.Streams, 128)
	setDefault(&l.Watches, 8)
	setDefault(&l.Paths, 1024)
	setDefault(&l.ImageIdle, time.Minute)
	return l
}

func setDefault[N int | int64 | time.Duration](v *N, def N) {
	if *v == 0 {
		*v = def
	}
}

// makings are the jobs that are being made: they count before the engine lists them.
type makings struct {
	mu  sync.Mutex
	ids map[string]int
}

// begin notes that a job is being made, if there is room for it beside those that the engine keeps. Of several jobs at a time
// one after the other is let in, so that they do not all find the same place free.
func (m *makings) begin(id string, kept func() ([]runtime.Status, error), most int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	list, err := kept()
	if err != nil {
		return err
	}
	all := make(map[string]bool, len(list)+len(m.ids))
	for _, st := range list {
		all[st.ID] = true
	}
	for k := range m.ids {
		all[k] = true
	}
	if !all[id] && len(all) >= most {
		return fmt.Errorf("create job %s: %d jobs are kept here, and no more: %w", id, len(all), runtime.ErrNoRoom)
	}
	if m.ids == nil {
		m.ids = map[string]int{}
	}
	m.ids[id]++
	return nil
}

func (m *makings) end(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ids[id]--; m.ids[id] == 0 {
		delete(m.ids, id)
	}
}
