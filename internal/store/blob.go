package store

import (
	"fmt"

	"haggle/market"
)

// blob returns bytes as a column takes them: none is NULL.
func blob(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// state returns a state's bytes.
func state(v any) []byte { return market.EncodeState(v) }

// column is a state that waits to be read from a column.
type column struct {
	name string
	data []byte
	into any
}

// decode reads states from their columns. An empty column leaves its state as it is.
func decode(columns ...column) error {
	for _, c := range columns {
		if len(c.data) == 0 {
			continue
		}
		if err := market.DecodeState(c.data, c.into); err != nil {
			return fmt.Errorf("read column %s: %w", c.name, err)
		}
	}
	return nil
}

// fixed copies a column into a value of exactly its length.
func fixed(into, column []byte) error {
	if len(column) != len(into) {
		return fmt.Errorf("%d bytes where %d are due", len(column), len(into))
	}
	copy(into, column)
	return nil
}

// bodyOf returns the hash of what was signed in a sealed record.
func bodyOf(sealed []byte) (market.Hash, error) {
	s, err := market.DecodeSealed(sealed)
	if err != nil {
		return market.Hash{}, err
	}
	return s.Hash(), nil
}

// checkTerms refuses terms that are not those of the lease: its id is the hash of what was signed.
func checkTerms(id market.LeaseID, sealed []byte) error {
	body, err := bodyOf(sealed)
	switch {
	case err != nil:
		return fmt.Errorf("terms of lease %s: %w", id, err)
	case market.LeaseID(body) != id:
		return fmt.Errorf("terms of lease %s: %w", id, ErrFork)
	}
	return nil
}

// unknown is the error for a lease that the store has not.
func unknown(id market.LeaseID) error {
	return market.NewError(market.CodeLeaseUnknown, "lease", id.Short())
}
