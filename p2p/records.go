package p2p

import (
	"context"
	"strings"
	"sync"

	"github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"
)

// Bounds of the announcements that a node keeps for others. The library keeps whatever it is sent for an hour: one peer that announces
// itself under a million keys would take all memory, and its own store reads every record for every question.
const (
	recordsPerPeer = 256     // a rig is found in some dozens of cells
	maxKeptRecords = 1 << 16 // in all; of 100 000 rigs a node keeps some hundreds
)

// recordStore keeps announcements in memory, by what is announced. Their keys are /providers/KEY/PEER. A peer's records beyond its share are
// dropped, and once there are too many of all each new one takes the place of any other: whoever has most loses most.
type recordStore struct {
	most, perPeer int

	mu    sync.Mutex
	keys  map[string]map[string][]byte // by /providers/KEY, then PEER
	peers map[string]int
	count int
}

func newRecordStore(most, perPeer int) *recordStore {
	return &recordStore{most: most, perPeer: perPeer, keys: map[string]map[string][]byte{}, peers: map[string]int{}}
}

// parts splits a record's key.
func (*recordStore) parts(key datastore.Key) (what, who string) {
	text := key.String()
	i := strings.LastIndexByte(text, '/')
	return text[:max(i, 0)], text[i+1:]
}

// Put implements datastore.Write. What is over a bound is no error: the library would try it again.
func (s *recordStore) Put(_ context.Context, key datastore.Key, value []byte) error {
	what, who := s.parts(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.keys[what][who]; !known {
		if s.peers[who] >= s.perPeer {
			return nil
		}
		if s.count >= s.most {
			s.dropAny()
		}
		s.peers[who]++
		s.count++
	}
	if s.keys[what] == nil {
		s.keys[what] = map[string][]byte{}
	}
	s.keys[what][who] = value
	return nil
}

// dropAny drops any record. s.mu is held.
func (s *recordStore) dropAny() {
	for what, of := range s.keys {
		for who := range of {
			s.drop(what, who)
			return
		}
	}
}

// drop is called with s.mu held.
func (s *recordStore) drop(what, who string) {
	if _, known := s.keys[what][who]; !known {
		return
	}
	delete(s.keys[what], who)
	if len(s.keys[what]) == 0 {
		delete(s.keys, what)
	}
	if s.peers[who]--; s.peers[who] == 0 {
		delete(s.peers, who)
	}
	s.count--
}

// Delete implements datastore.Write.
func (s *recordStore) Delete(_ context.Context, key datastore.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(s.parts(key))
	return nil
}

// Get implements datastore.Read.
func (s *recordStore) Get(_ context.Context, key datastore.Key) ([]byte, error) {
	what, who := s.parts(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	value, known := s.keys[what][who]
	if !known {
		return nil, datastore.ErrNotFound
	}
	return value, nil
}

// Has implements datastore.Read.
func (s *recordStore) Has(ctx context.Context, key datastore.Key) (bool, error) {
	return datastore.GetBackedHas(ctx, s, key)
}

// GetSize implements datastore.Read.
func (s *recordStore) GetSize(ctx context.Context, key datastore.Key) (int, error) {
	return datastore.GetBackedSize(ctx, s, key)
}

// Query implements datastore.Read: all records of one key, or all.
func (s *recordStore) Query(_ context.Context, q query.Query) (query.Results, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []query.Entry
	add := func(what string) {
		for who, value := range s.keys[what] {
			found = append(found, query.Entry{Key: what + "/" + who, Value: value, Size: len(value)})
		}
	}
	prefix := datastore.NewKey(q.Prefix).String()
	if _, one := s.keys[prefix]; one || strings.Count(prefix, "/") > 1 {
		add(prefix)
	} else {
		for what := range s.keys {
			if prefix == "/" || strings.HasPrefix(what, prefix+"/") {
				add(what)
			}
		}
	}
	q.Prefix = ""
	return query.NaiveQueryApply(q, query.ResultsWithEntries(q, found)), nil
}

// Batch implements datastore.Batching.
func (s *recordStore) Batch(context.Context) (datastore.Batch, error) {
	return datastore.NewBasicBatch(s), nil
}

// Sync implements datastore.Datastore.
func (*recordStore) Sync(context.Context, datastore.Key) error { return nil }

// Close implements datastore.Datastore.
func (*recordStore) Close() error { return nil }
