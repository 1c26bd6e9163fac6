package store_test

import (
	"errors"
	"testing"

	"haggle/internal/store"
)

func TestRefusesNetworkFileSystems(t *testing.T) {
	for name, c := range map[string]struct {
		number  uint32
		refused bool
	}{
		"NFS":   {0x6969, true},
		"CIFS":  {0xff534d42, true},
		"SMB":   {0x517b, true},
		"SMB2":  {0xfe534d42, true},
		"FUSE":  {0x65735546, true},
		"9P":    {0x01021997, true},
		"AFS":   {0x5346414f, true},
		"Ceph":  {0x00c36400, true},
		"xfs":   {0x58465342, false},
		"ext4":  {0xef53, false},
		"btrfs": {0x9123683e, false},
		"tmpfs": {0x01021994, false},
	} {
		if err := store.JudgeDisk("/srv", c.number); errors.Is(err, store.ErrNetworkDisk) != c.refused {
			t.Errorf("%s: got %v, want refused %v", name, err, c.refused)
		}
	}
}
