package renter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"haggle/internal/view"
	"haggle/market"
)

// Bounds of saved queries.
const (
	maxQueries   = 64
	maxQueryText = 1024
)

// SavedQuery is a query with the name that the user gave it.
type SavedQuery struct {
	Name string `cbor:"1,keyasint"`
	Text string `cbor:"2,keyasint"`
}

// query reads what the user typed; @NAME in it stands for a saved query. The errors are those of market.ExpandQuery and
// market.ParseQuery.
func (a *Agent) query(ctx context.Context, text string) (market.Query, error) {
	text, err := a.expand(ctx, text)
	if err != nil {
		return market.Query{}, err
	}
	return market.ParseQuery(text)
}

// expand puts saved queries in the place of their names.
func (a *Agent) expand(ctx context.Context, text string) (string, error) {
	if !strings.Contains(text, "@") {
		return text, nil
	}
	s, err := a.settings(ctx)
	if err != nil {
		return "", err
	}
	return market.ExpandQuery(text, savedTexts(s.Queries))
}

// savedTexts is the saved queries by name.
func savedTexts(list []SavedQuery) map[string]string {
	texts := make(map[string]string, len(list))
	for _, q := range list {
		texts[q.Name] = q.Text
	}
	return texts
}

// SavedQueries lists the saved queries by name.
func (a *Agent) SavedQueries(ctx context.Context) ([]view.SavedQuery, error) {
	s, err := a.settings(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]view.SavedQuery, 0, len(s.Queries))
	for _, q := range s.Queries {
		list = append(list, view.SavedQuery{Name: q.Name, Query: q.Text})
	}
	return list, nil
}

// SaveQuery keeps a query under a name, in place of the one that has it. It must make sense by itself and names no other. The errors have
// code CodeBadSaved, those of market.ParseQuery, and CodeBadRequest where there are too many.
func (a *Agent) SaveQuery(ctx context.Context, name, text string) (view.SavedQuery, error) {
	saved := view.SavedQuery{Name: name, Query: strings.TrimSpace(text)}
	if err := market.CheckSavedName(name); err != nil {
		return saved, err
	}
	switch {
	case saved.Query == "":
		return saved, badRequest("a saved query asks for something")
	case len(saved.Query) > maxQueryText:
		return saved, badRequest(fmt.Sprintf("a saved query has %d bytes at most", maxQueryText))
	}
	if _, err := market.ParseQuery(saved.Query); err != nil {
		return saved, err
	}
	return saved, a.changeSettings(ctx, func(s *Settings) error {
		list := slices.DeleteFunc(slices.Clone(s.Queries), func(q SavedQuery) bool { return q.Name == name })
		if len(list) >= maxQueries {
			return badRequest(fmt.Sprintf("%d queries are saved: remove one first", maxQueries))
		}
		list = append(list, SavedQuery{Name: name, Text: saved.Query})
		slices.SortFunc(list, func(x, y SavedQuery) int { return cmp.Compare(x.Name, y.Name) })
		s.Queries = list
		return nil
	})
}

// RemoveQuery forgets a saved query. The error has code CodeSavedUnknown.
func (a *Agent) RemoveQuery(ctx context.Context, name string) error {
	if err := market.CheckSavedName(name); err != nil {
		return err
	}
	return a.changeSettings(ctx, func(s *Settings) error {
		left := slices.DeleteFunc(slices.Clone(s.Queries), func(q SavedQuery) bool { return q.Name == name })
		if len(left) == len(s.Queries) {
			_, err := market.ExpandQuery("@"+name, savedTexts(s.Queries))
			return err
		}
		s.Queries = left
		return nil
	})
}
