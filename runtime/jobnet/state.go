//go:build linux

package jobnet

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
)

const stateFile = "networks.json"

// state is what outlives the process.
type state struct {
	// Month is the calendar month that MonthBytes counts, as 2026-11.
	Month      string
	MonthBytes uint64
	// Spent is the monthly cap that was used up in this month; a larger one is not.
	Spent int64
	Jobs  map[string]*record
	// Forwarding names the interfaces that forward only because we switched it on.
	Forwarding []string
	// Listing and Text are fingerprints of the table as nft lists it and as we wrote it.
	Listing, Text string
}

// record is one job.
type record struct {
	Slot     int
	Pid      int
	Netns    string
	Up, Down int64 // its own limits in bits a second, 0 for none
	// In and Out are all bytes so far; RawIn and RawOut what the kernel's counters said when they were last read.
	In, Out       uint64
	RawIn, RawOut uint64
}

// addresses are the rig's end and the job's end of a slot's link.
func addresses(pool netip.Prefix, slot int) (gateway, job netip.Addr) {
	b := pool.Addr().As4()
	first := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]) + 2*uint32(slot)
	return ipv4(first), ipv4(first + 1)
}

func ipv4(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// slots is how many jobs a pool has addresses for.
func slots(pool netip.Prefix) int { return 1 << (31 - pool.Bits()) }

// count takes what a counter says now. One that went back has been set to zero by someone, and has counted since.
func count(total, raw *uint64, now uint64) (more uint64) {
	more = now
	if now >= *raw {
		more = now - *raw
	}
	*raw = now
	*total += more
	return more
}

func loadState(dir string) (state, error) {
	s := state{Jobs: map[string]*record{}}
	b, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	} else if err != nil {
		return s, fmt.Errorf("networks: %w", err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("networks: %s: %w", stateFile, err)
	}
	for id, r := range s.Jobs {
		if r == nil || r.Slot < 0 {
			return s, fmt.Errorf("networks: %s: job %.80q has no slot", stateFile, id)
		}
	}
	return s, nil
}

// save writes the state so that a crash leaves the old one or the new one.
func (s *state) save(dir string) error {
	b, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return fmt.Errorf("networks: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("networks: %w", err)
	}
	f, err := os.CreateTemp(dir, stateFile+".new-")
	if err != nil {
		return fmt.Errorf("networks: %w", err)
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, stateFile))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("networks: %w", err), os.Remove(f.Name()))
	}
	return nil
}
