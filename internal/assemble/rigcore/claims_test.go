package rigcore

import (
	"strings"
	"testing"

	"haggle/internal/config"
)

func TestTheOwnersClaimsAreInTheOrderOfOffers(t *testing.T) {
	list, err := claims(config.Rig{Claims: []string{"raid=raid1", "nvlink=true", "feeds=2"}})
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, c := range list {
		shown = append(shown, c.Name+"="+c.Show())
	}
	if got := strings.Join(shown, " "); got != "feeds=2 nvlink=true raid=raid1" {
		t.Error(got)
	}
	for _, bad := range [][]string{{"nvlink=maybe"}, {"feeds=2", "feeds=3"}, {"interconnect_gbps=-1"}} {
		if _, err := claims(config.Rig{Claims: bad}); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}
