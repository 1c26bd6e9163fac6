package view

import "strconv"

// Visible is what strangers showed of a rig's offer when the rig asked them as a renter does.
type Visible struct {
	At      int64  `json:"at_ms" doc:"Unix milliseconds; of the last time"`
	Model   string `json:"gpu_name,omitempty" doc:"that was asked for"`
	Asked   int    `json:"asked" doc:"strangers"`
	Answers int    `json:"answers" doc:"of these"`
	Keep    int    `json:"keep" doc:"of these: those whose list is to hold the offer"`
	Seen    int    `json:"seen" doc:"of these: those whose list does"`
	Price   Money  `json:"price" doc:"of a slot-hour"`
	Rank    int    `json:"rank,omitempty" doc:"1 is the cheapest of the model that the strangers showed; absent: nobody answered"`
	Of      int    `json:"of,omitempty" doc:"offers of the model that they showed, this rig's included"`
}

// Sentence says it in words.
func (v Visible) Sentence() string {
	what := v.Model
	if what == "" {
		what = "rigs"
	}
	switch {
	case v.Asked == 0:
		return "no other rig was found to ask"
	case v.Answers == 0:
		return "none of " + strconv.Itoa(v.Asked) + " strangers answers"
	case v.Keep == 0:
		return "none of the " + strconv.Itoa(v.Answers) + " strangers that answered keeps offers of this part of the market"
	}
	seen := "seen by " + strconv.Itoa(v.Seen) + " of " + strconv.Itoa(v.Keep) + " strangers"
	if v.Of < 2 {
		return seen + "; the only " + what + " that they showed"
	}
	return seen + "; " + ordinal(v.Rank) + "cheapest of " + strconv.Itoa(v.Of) + " " + what
}

// Hidden reports whether those who ought to show the offer mostly do not.
func (v Visible) Hidden() bool {
	return v.Keep > 0 && 2*v.Seen < v.Keep || v.Asked > 0 && v.Answers == 0
}

// ordinal writes a place before a superlative: nothing for the first.
func ordinal(n int) string {
	if n <= 1 {
		return ""
	}
	end := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return strconv.Itoa(n) + end + " "
}
