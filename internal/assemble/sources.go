package assemble

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"haggle/internal/config"
	"haggle/internal/networks"
	"haggle/internal/view"
	"haggle/market"
	"haggle/p2p"
)

// Bounds of the file of peers, which is ours and may have been written to by anybody.
const (
	maxPeersFile = 64 << 10 // bytes
	maxPeers     = 64       // addresses
	keepPeers    = 10 * time.Minute
	firstPeers   = 30 * time.Second
)

// Sources returns where a node looks for its first peers.
func Sources(c config.Sources, network, database string) p2p.Sources {
	s := p2p.Sources{DNS: c.DNS, LAN: c.LAN == config.Yes, Public: c.AskPublic(network), PublicBootstrap: c.PublicBootstrap}
	if c.Remember == config.Yes {
		s.Remembered = acquainted(peersFile(network, database))
	}
	return s
}

// Members returns who belongs to a node's network, where it is a private one.
func Members(c config.Sources, network, database string) (p2p.Members, error) {
	if c.Creator == "" {
		return p2p.Members{}, nil
	}
	creator, err := market.ParseKey(c.Creator)
	if err != nil {
		return p2p.Members{}, err
	}
	if !market.IsCreator(network, creator) {
		return p2p.Members{}, &config.Error{
			Key: "members.creator", Problem: "is not the key that network " + network + " was made with",
			Hint: "join it again by the line that `haggle network invite` prints, or leave members.creator out for a public network",
		}
	}
	folder := networks.FolderBeside(database)
	return p2p.Members{
		Creator: creator, Load: folder.Loader(network),
		Save: func(list []byte) error { return folder.Save(network, list) },
	}, nil
}

// KeepAcquainted writes the peers that a node would call first in its next life beside its database, now and then and when ctx ends.
// It returns nil.
func KeepAcquainted(ctx context.Context, node *p2p.Node, c config.Sources, database string) error {
	if c.Remember != config.Yes || market.IsLab(node.Network()) {
		return nil
	}
	path := peersFile(node.Network(), database)
	pause := time.NewTimer(firstPeers)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil // the node is closing: what it knew was written not long ago
		case <-pause.C:
		}
		if peers := node.Acquainted(); len(peers) > 0 {
			_ = writePeers(path, peers) // a start without them is a little slower, no more
		}
		pause.Reset(keepPeers)
	}
}

// peersFile is where the peers of a network are kept: those of one network are of no use to another.
func peersFile(network, database string) string {
	return filepath.Join(filepath.Dir(database), "peers-"+network)
}

func acquainted(path string) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var peers []string
	lines := bufio.NewScanner(io.LimitReader(f, maxPeersFile))
	for lines.Scan() && len(peers) < maxPeers {
		if line := strings.TrimSpace(lines.Text()); strings.HasPrefix(line, "/") {
			peers = append(peers, line)
		}
	}
	return peers
}

func writePeers(path string, peers []string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".peers-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(peers, "\n") + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error is the one to tell
	}
	return err
}

// sourcesOf returns what a node's sources gave.
func sourcesOf(n *p2p.Node) []view.PeerSource {
	var all []view.PeerSource
	for _, r := range n.Sources() {
		s := view.PeerSource{Name: string(r.Source), On: r.On, Found: r.Found, Connected: r.Connected, Reason: market.Printable(r.Reason)}
		if !r.At.IsZero() {
			s.AtMs = r.At.UnixMilli()
		}
		if !r.Announced.IsZero() {
			s.AnnouncedMs = r.Announced.UnixMilli()
		}
		all = append(all, s)
	}
	return all
}
