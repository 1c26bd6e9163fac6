package market_test

import (
	"crypto/ed25519"
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

func BenchmarkOpenOffer(b *testing.B) {
	raw := market.SealOffer(markettest.Network, markettest.Rig(), markettest.Offer()).Encode()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, _, err := market.OpenOffer(markettest.Network, raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBareVerify(b *testing.B) {
	message := make([]byte, 64)
	sig := ed25519.Sign(markettest.Rig(), message)
	key := market.KeyOf(markettest.Rig())
	for b.Loop() {
		if !ed25519.Verify(key[:], message, sig) {
			b.Fatal("not verified")
		}
	}
}
