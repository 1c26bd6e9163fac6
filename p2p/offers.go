package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"haggle/market"
)

const (
	maxOffers    = 32 // of one rig
	fetchTimeout = 3 * time.Second
)

// OffersHandler serves a rig's offers: current returns the sealed offers of the moment, of which the first 32 are sent. It
// is called by many goroutines.
func OffersHandler(current func() [][]byte) Handler {
	return func(ctx context.Context, s *Stream) error {
		m, err := s.Receive(ctx)
		if err != nil {
			return err
		}
		if _, ok := m.(market.OffersRequest); !ok {
			return market.Unexpected(m)
		}
		offers := current()
		for _, offer := range offers[:min(len(offers), maxOffers)] {
			if err := s.Send(ctx, market.OfferMessage{Offer: offer}); err != nil {
				return err
			}
		}
		return s.Send(ctx, market.EndMessage{})
	}
}

// FetchOffers asks a rig for its offers, within 3 seconds. It returns their sealed bytes unopened, at most 32 of at most
// market.MaxOffer each; a rig that sends more is refused whole.
func (n *Node) FetchOffers(ctx context.Context, key market.Key) ([][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	s, err := n.Open(ctx, key, OffersProtocol)
	if err != nil {
		return nil, fmt.Errorf("fetch offers: %w", err)
	}
	// A rig that refuses may do so before it has read the question: its reason is then still to be received.
	began := time.Now()
	sendErr := s.Send(ctx, market.OffersRequest{})
	offers, err := receiveOffers(ctx, s, func() { n.timed(key, time.Since(began)) })
	if err != nil {
		_ = s.Reset() // the rest, if any, is not wanted
		if sendErr != nil && !s.refused.Load() {
			err = sendErr
		}
		return nil, fmt.Errorf("fetch offers: %w", err)
	}
	_ = s.Close() // all that was wanted has come
	return offers, nil
}

// timed notes how long a peer took for the first word of an answer on a new stream, which is a round trip and what it did meanwhile.
func (n *Node) timed(key market.Key, took time.Duration) {
	if id, err := peerID(key); err == nil {
		n.trips.took(id, took, time.Now())
	}
}

// receiveOffers calls begun with the first word of the answer.
func receiveOffers(ctx context.Context, s *Stream, begun func()) ([][]byte, error) {
	var offers [][]byte
	for first := true; ; first = false {
		m, err := s.Receive(ctx)
		if first && err == nil {
			begun()
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil, market.NewError(market.CodeUnexpected, "got", "(end of the stream)")
		case err != nil:
			return nil, err
		}
		switch m := m.(type) {
		case market.OfferMessage:
			if len(m.Offer) > market.MaxOffer || len(offers) == maxOffers {
				return nil, tooLarge(market.MaxOffer)
			}
			offers = append(offers, m.Offer)
		case market.EndMessage:
			return offers, nil
		default:
			return nil, market.Unexpected(m)
		}
	}
}
