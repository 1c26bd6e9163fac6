package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"haggle/market"
)

const (
	snapshotTimeout  = 3 * time.Second
	maxSnapshotCell  = 128     // bytes of a cell's name
	maxSnapshotBytes = 2 << 20 // sealed offers of one page
)

// SnapshotHandler serves pages of the offers that this program has learnt of. page is called by many goroutines, with who asks and
// requests that keep their bounds; of what it returns no more is sent than a page may hold.
func SnapshotHandler(page func(asker market.Key, r market.SnapshotRequest) ([][]byte, market.SnapshotEnd)) Handler {
	return func(ctx context.Context, s *Stream) error {
		m, err := s.Receive(ctx)
		if err != nil {
			return err
		}
		r, ok := m.(market.SnapshotRequest)
		if !ok {
			return market.Unexpected(m)
		}
		if err := checkSnapshot(&r); err != nil {
			return err
		}
		offers, end := page(s.Peer(), r)
		size := 0
		for _, offer := range offers[:min(len(offers), int(r.Max))] {
			if size += len(offer); size > maxSnapshotBytes {
				return fmt.Errorf("a page of %d offers is over its bound", len(offers))
			}
			if err := s.Send(ctx, market.OfferMessage{Offer: offer}); err != nil {
				return err
			}
		}
		return s.Send(ctx, end)
	}
}

// checkSnapshot checks a request's bounds and completes it.
func checkSnapshot(r *market.SnapshotRequest) error {
	bad := func(why string) error { return market.NewError(market.CodeBadRequest, "why", why) }
	switch {
	case len(r.Cells) == 0 || len(r.Cells) > market.MaxSnapshotCells:
		return bad("a snapshot is asked for of 1 to " + strconv.Itoa(market.MaxSnapshotCells) + " cells")
	case len(r.Have)%market.SnapshotNameSize != 0 || len(r.Have) > market.SnapshotNameSize*market.MaxSnapshotHave:
		return bad("the list of known offers is out of bounds")
	}
	for _, cell := range r.Cells {
		if cell == "" || len(cell) > maxSnapshotCell {
			return bad("a cell's name is out of bounds")
		}
	}
	if r.Max == 0 || r.Max > market.MaxSnapshotPage {
		r.Max = market.MaxSnapshotPage
	}
	return nil
}

// Snapshot asks a peer for a page of the offers that it has learnt of, within 3 seconds. It returns their sealed bytes unopened, at
// most market.MaxSnapshotPage of at most market.MaxOffer bytes each and 2 MiB together; a peer that sends more is refused whole.
func (n *Node) Snapshot(ctx context.Context, peer market.Key, r market.SnapshotRequest) ([][]byte, market.SnapshotEnd, error) {
	if err := checkSnapshot(&r); err != nil {
		return nil, market.SnapshotEnd{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	s, err := n.Open(ctx, peer, SnapshotProtocol)
	if err != nil {
		return nil, market.SnapshotEnd{}, fmt.Errorf("snapshot: %w", err)
	}
	// A peer that refuses may do so before it has read the question: its reason is then still to be received.
	sendErr := s.Send(ctx, r)
	offers, end, err := receiveSnapshot(ctx, s, int(r.Max))
	if err != nil {
		_ = s.Reset() // the rest, if any, is not wanted
		if sendErr != nil && !s.refused.Load() {
			err = sendErr
		}
		return nil, market.SnapshotEnd{}, fmt.Errorf("snapshot: %w", err)
	}
	_ = s.Close() // all that was wanted has come
	return offers, end, nil
}

func receiveSnapshot(ctx context.Context, s *Stream, most int) (offers [][]byte, end market.SnapshotEnd, err error) {
	size := 0
	for {
		m, err := s.Receive(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil, end, market.NewError(market.CodeUnexpected, "got", "(end of the stream)")
		case err != nil:
			return nil, end, err
		}
		switch m := m.(type) {
		case market.OfferMessage:
			size += len(m.Offer)
			if len(m.Offer) > market.MaxOffer || len(offers) == most || size > maxSnapshotBytes {
				return nil, end, tooLarge(maxSnapshotBytes)
			}
			offers = append(offers, m.Offer)
		case market.SnapshotEnd:
			return offers, m, nil
		default:
			return nil, end, market.Unexpected(m)
		}
	}
}
