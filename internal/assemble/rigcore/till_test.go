package rigcore

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/config"
	"haggle/market"
)

func TestTheOwnerIsToldOfPaymentProgramsThatTakeNoMoney(t *testing.T) {
	pays := []market.PayMethod{{Name: "hand", Settles: market.SettlesByHand}}
	for name, c := range map[string]struct {
		pay  config.RigPay
		idle int
	}{
		"nothing is set up":            {config.RigPay{}, 0},
		"what is set up works":         {config.RigPay{Programs: config.Programs{"hand": {"text": "x"}}}, 0},
		"one is not there":             {config.RigPay{Programs: config.Programs{"gold": {}, "hand": {}}}, 1},
		"one is wanted and not there":  {config.RigPay{Methods: []string{"gold", "gold"}}, 1},
		"one is set up and not wanted": {config.RigPay{Methods: []string{"hand"}, Programs: config.Programs{"gold": {}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			list := idlePrograms(c.pay, pays)
			if diff := cmp.Diff(c.idle, len(list)); diff != "" {
				t.Errorf("told of %v (-want +got):\n%s", list, diff)
			}
		})
	}
}
