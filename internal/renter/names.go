package renter

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"haggle/internal/index"
	"haggle/internal/view"
	"haggle/market"
)

// NameBook keeps what the user calls owners and rigs.
type NameBook interface {
	// GivenNames returns all names, by key.
	GivenNames(ctx context.Context) (map[market.Key]string, error)
	// GiveName keeps a name in place of the one that the key has; "" takes it back.
	GiveName(ctx context.Context, key market.Key, name string, now time.Time) error
}

// maxNames is how many names a user can give.
const maxNames = 4096

// givenForm is the form of a name, which is typed on command lines and in queries. It is compiled once and never written to.
var givenForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// names are the names that the user gave, read once. The zero value has none.
type names struct {
	mu    sync.RWMutex
	given map[market.Key]string // replaced, never written to
}

func (n *names) all() map[market.Key]string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.given
}

// loadNames reads the names of the last life. Without them nothing else suffers.
func (a *Agent) loadNames(ctx context.Context) {
	if a.cfg.Names == nil {
		return
	}
	given, err := a.cfg.Names.GivenNames(ctx)
	if err != nil {
		a.cfg.Log.Warn("names that were given are not known", "err", err)
		return
	}
	a.names.mu.Lock()
	defer a.names.mu.Unlock()
	a.names.given = given
}

// nameOf returns what the user calls a rig, or else its owner; "" where neither has a name.
func (a *Agent) nameOf(rig, owner market.Key) string {
	given := a.names.all()
	return cmp.Or(given[rig], given[owner])
}

// GivenNames lists the names that the user gave, by name.
func (a *Agent) GivenNames(context.Context) ([]view.GivenName, error) {
	list := []view.GivenName{}
	for key, name := range a.names.all() {
		list = append(list, a.givenView(key, name))
	}
	slices.SortFunc(list, func(x, y view.GivenName) int { return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Key, y.Key)) })
	return list, nil
}

// givenView tells what is known of a named key from the offers that are known now.
func (a *Agent) givenView(key market.Key, name string) view.GivenName {
	v := view.GivenName{Name: name, Key: key.String()}
	a.offersNow(func(k *index.Known) {
		switch {
		case k.Offer.Rig == key:
			v.Calls = market.Printable(k.Offer.Name)
		case k.Offer.Owner == key:
			v.Owner = true
		}
	})
	return v
}

// GiveName names the owner or rig that a word means, or with an empty name takes its name back. The errors have code CodeBadRequest for
// what is no name, CodeGivenTaken for one that is another's, and those of Who.
func (a *Agent) GiveName(ctx context.Context, who, name string) (view.GivenName, error) {
	if a.cfg.Names == nil {
		return view.GivenName{}, market.NewError(market.CodeBadRequest, "why", "this agent keeps no names")
	}
	if _, err := market.ParseKey(name); name != "" && (err == nil || !givenForm.MatchString(name)) {
		return view.GivenName{}, market.NewError(market.CodeBadRequest,
			"why", "a name is made of letters, digits, dots, dashes and underscores, 64 at most, and begins with a letter or digit")
	}
	key, err := a.Who(who)
	if err != nil {
		return view.GivenName{}, err
	}
	a.choosing.Lock()
	defer a.choosing.Unlock()
	given := a.names.all()
	for other, theirs := range given {
		if name != "" && other != key && strings.EqualFold(theirs, name) {
			return view.GivenName{}, market.NewError(market.CodeGivenTaken, "name", theirs, "key", other.String())
		}
	}
	if name != "" && given[key] == "" && len(given) >= maxNames {
		return view.GivenName{}, market.NewError(market.CodeBadRequest, "why", fmt.Sprintf("you have given %d names: take some back first", maxNames))
	}
	if err := a.cfg.Names.GiveName(ctx, key, name, a.cfg.Clock()); err != nil {
		return view.GivenName{}, fmt.Errorf("give a name: %w", err)
	}
	next := maps.Clone(given)
	if next == nil {
		next = map[market.Key]string{}
	}
	if next[key] = name; name == "" {
		delete(next, key)
	}
	a.names.mu.Lock()
	a.names.given = next
	a.names.mu.Unlock()
	return a.givenView(key, name), nil
}

// Who returns the key that a word means: the key itself, a name that the user gave, or what the one rig with an offer calls itself. The
// error has code CodeNobody, or CodeSeveralSame.
func (a *Agent) Who(word string) (market.Key, error) {
	if key, err := market.ParseKey(word); err == nil {
		return key, nil
	}
	for key, name := range a.names.all() {
		if strings.EqualFold(name, word) {
			return key, nil
		}
	}
	var hits []market.Key
	a.offersNow(func(k *index.Known) {
		if strings.EqualFold(k.Offer.Name, word) && !slices.Contains(hits, k.Offer.Rig) {
			hits = append(hits, k.Offer.Rig)
		}
	})
	switch len(hits) {
	case 1:
		return hits[0], nil
	case 0:
		return market.Key{}, market.NewError(market.CodeNobody, "who", clip(word))
	}
	return market.Key{}, market.NewError(market.CodeSeveralSame, "count", strconv.Itoa(len(hits)), "who", clip(word))
}

// OwnerOf returns the owner of a rig as its offers name it, and the zero key where none is known.
func (a *Agent) OwnerOf(rig market.Key) market.Key {
	for _, k := range a.index.Of(rig, a.cfg.Clock()) {
		return k.Offer.Owner
	}
	return market.Key{}
}

// whoOwns returns the owner that a word means: as Who, but a rig that is named stands for its owner.
func (a *Agent) whoOwns(word string) (market.Key, error) {
	key, err := a.Who(word)
	if _, typed := market.ParseKey(word); err != nil || typed == nil {
		return key, err
	}
	return cmp.Or(a.OwnerOf(key), key), nil
}
