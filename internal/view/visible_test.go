package view_test

import (
	"testing"

	"haggle/internal/view"
)

func TestARigIsToldHowItIsSeen(t *testing.T) {
	for _, c := range []struct {
		v      view.Visible
		want   string
		hidden bool
	}{
		{view.Visible{}, "no other rig was found to ask", false},
		{view.Visible{Asked: 5}, "none of 5 strangers answers", true},
		{view.Visible{Asked: 5, Answers: 4}, "none of the 4 strangers that answered keeps offers of this part of the market", false},
		{view.Visible{Asked: 8, Answers: 8, Keep: 8, Seen: 7, Rank: 3, Of: 41, Model: "RTX_4090"}, "seen by 7 of 8 strangers; 3rd cheapest of 41 RTX_4090", false},
		{view.Visible{Asked: 8, Answers: 8, Keep: 8, Seen: 3, Rank: 1, Of: 2, Model: "RTX_4090"}, "seen by 3 of 8 strangers; cheapest of 2 RTX_4090", true},
		{view.Visible{Asked: 8, Answers: 8, Keep: 8, Seen: 8, Rank: 1, Of: 1, Model: "H100"}, "seen by 8 of 8 strangers; the only H100 that they showed", false},
		{view.Visible{Asked: 8, Answers: 8, Keep: 8, Seen: 8, Rank: 112, Of: 500}, "seen by 8 of 8 strangers; 112th cheapest of 500 rigs", false},
		{view.Visible{Asked: 8, Answers: 8, Keep: 8, Seen: 8, Rank: 22, Of: 500}, "seen by 8 of 8 strangers; 22nd cheapest of 500 rigs", false},
	} {
		if got := c.v.Sentence(); got != c.want || c.v.Hidden() != c.hidden {
			t.Errorf("got %q, hidden %t; want %q", got, c.v.Hidden(), c.want)
		}
	}
	if got := view.Named("attic", "rig-1"); got != "attic (calls itself rig-1)" {
		t.Errorf("got %q", got)
	}
}
