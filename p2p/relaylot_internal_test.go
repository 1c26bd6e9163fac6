package p2p

import "testing"

func TestOfManyRelaysFewAreFound(t *testing.T) {
	for _, others := range []int{0, 1, relaysEnough - 1} {
		if !drawn(others) {
			t.Errorf("beside %d others a node is left out", others)
		}
	}
	// A network in which one node after the other begins to relay: each sees those that stand there already.
	found := 0
	for range 100_000 {
		if drawn(found) {
			found++
		}
	}
	if found < relaysEnough || found > 2000 {
		t.Errorf("of 100 000 nodes %d are found", found)
	}
}
