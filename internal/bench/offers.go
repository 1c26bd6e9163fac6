package main

import (
	"context"
	"crypto/ed25519"
	"time"

	"haggle/market"
	"haggle/market/markettest"
)

// rounds of each side, taken in turns, so that a busy moment of the machine meets both.
const rounds = 20

// offersVerified compares opening offers (decode, verify, validate) with verifying a signature of the same shape alone, on
// one core.
func offersVerified(ctx context.Context) (ours, theirs float64, err error) {
	raw := market.SealOffer(markettest.Network, markettest.Rig(), markettest.Offer()).Encode()
	message := make([]byte, 64)
	key, sig := market.KeyOf(markettest.Rig()), ed25519.Sign(markettest.Rig(), message)
	open := func() bool {
		_, _, err := market.OpenOffer(markettest.Network, raw)
		return err == nil
	}
	verify := func() bool { return ed25519.Verify(key[:], message, sig) }
	for range rounds {
		if ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		ours, theirs = max(ours, perSecond(open)), max(theirs, perSecond(verify))
	}
	return ours, theirs, nil
}

// perSecond runs a job for a tenth of a second and returns its rate, 0 if it ever fails.
func perSecond(job func() bool) float64 {
	begun, count := time.Now(), 0
	for time.Since(begun) < 100*time.Millisecond {
		if !job() {
			return 0
		}
		count++
	}
	return float64(count) / time.Since(begun).Seconds()
}
