package networks

import (
	"crypto/ed25519"
	"slices"
	"time"

	"haggle/market"
)

// Settings is what a program's configuration says about its network.
type Settings struct {
	Network   string
	Creator   string   // a key, or "" on a public network
	Bootstrap []string // multiaddrs that end in /p2p/ID
}

// Place is where a program keeps its configuration and its networks. It is used by one goroutine.
type Place struct {
	Folder Folder
	// Key returns the program's private key, which is made if need be.
	Key func() (ed25519.PrivateKey, error)
	// Read returns the settings of the configuration file, Write changes them there and nothing else.
	Read  func() (Settings, error)
	Write func(Settings) error
	// Owned gives files that were written to whoever runs the program, where that is somebody else; nil where nobody is.
	Owned func(paths ...string) error
	// Now is the clock.
	Now func() time.Time
}

// Network is a private network that a program knows.
type Network struct {
	Name    string     `json:"name"`
	Creator market.Key `json:"creator"`
	Mine    bool       `json:"mine" doc:"made with this program's key"`
	Current bool       `json:"current" doc:"the configuration names it"`
	Members int        `json:"members" doc:"on the newest list; the creator belongs to it in any case"`
	Seq     int64      `json:"seq" doc:"of the newest list that is known here; 0: none yet"`
}

// Create makes a private network with the program's key and moves the program there. Its full name is returned.
func (p Place) Create(name string) (string, error) {
	key, err := p.Key()
	if err != nil {
		return "", err
	}
	creator := market.KeyOf(key)
	network, err := market.PrivateNetwork(name, creator)
	if err != nil {
		return "", err
	}
	if _, err := p.change(network, key, func(*market.Members) {}); err != nil {
		return "", err
	}
	return network, p.enter(market.Invitation{Network: network, Creator: creator})
}

// Join moves the program to the network of an invitation.
func (p Place) Join(line string) (market.Invitation, error) {
	i, err := market.ParseInvitation(line)
	if err != nil {
		return market.Invitation{}, err
	}
	return i, p.enter(i)
}

func (p Place) enter(i market.Invitation) error {
	if err := p.keepPublic(); err != nil {
		return err
	}
	if err := p.Folder.write(i.Network, lineEnding, []byte(i.String()+"\n")); err != nil {
		return err
	}
	if err := p.owned(p.Folder.path(i.Network, lineEnding)); err != nil {
		return err
	}
	return p.Write(Settings{Network: i.Network, Creator: i.Creator.String(), Bootstrap: i.Bootstrap})
}

// Invite puts programs on the list of the program's network, or gives those that are there a name, and returns the line by which they
// join. The name may be "". Addrs are those by which members can be found; the first 4 that are good for others are told.
func (p Place) Invite(keys []market.Key, name string, addrs []string) (market.Invitation, error) {
	network, key, err := p.own()
	if err != nil {
		return market.Invitation{}, err
	}
	_, err = p.change(network, key, func(m *market.Members) {
		for _, k := range keys {
			i := slices.IndexFunc(m.List, func(member market.Member) bool { return member.Key == k })
			switch {
			case i < 0:
				m.List = append(m.List, market.Member{Key: k, Name: name})
			case name != "":
				m.List[i].Name = name
			}
		}
	})
	if err != nil {
		return market.Invitation{}, err
	}
	i := market.Invitation{Network: network, Creator: market.KeyOf(key), Bootstrap: tellable(addrs)}
	return i, i.Validate()
}

// Remove takes programs off the list. Those that are not there are returned.
func (p Place) Remove(keys []market.Key) (absent []market.Key, err error) {
	network, key, err := p.own()
	if err != nil {
		return nil, err
	}
	_, err = p.change(network, key, func(m *market.Members) {
		for _, k := range keys {
			if !m.Has(k) {
				absent = append(absent, k)
			}
		}
		m.List = slices.DeleteFunc(m.List, func(member market.Member) bool { return slices.Contains(keys, member.Key) })
	})
	return absent, err
}

// keepPublic keeps where a program stood before it moves to a private network: it comes back to its own addresses.
func (p Place) keepPublic() error {
	s, err := p.Read()
	if err != nil || s.Creator != "" {
		return err
	}
	if err := p.Folder.keepPublic(s.Network, s.Bootstrap); err != nil {
		return err
	}
	return p.owned(p.Folder.path(s.Network, publicEnding))
}

// Leave moves the program back to the public network where it was before. A network that others made is forgotten.
func (p Place) Leave() (network string, err error) {
	s, creator, err := p.current()
	if err != nil {
		return "", err
	}
	key, err := p.Key()
	if err != nil {
		return "", err
	}
	before := Settings{Network: market.NetworkMain}
	if before.Network, before.Bootstrap, err = p.Folder.public(); err != nil {
		return "", err
	}
	if err := p.Write(before); err != nil {
		return "", err
	}
	if creator == market.KeyOf(key) {
		return s.Network, nil // nobody else can sign for it
	}
	return s.Network, p.Folder.Drop(s.Network)
}

// Return moves the program to a network that it knows.
func (p Place) Return(network string) error {
	i, err := p.Folder.Invitation(network)
	if err != nil {
		return err
	}
	if i == nil {
		return market.NewError(market.CodeBadInvitation, "why", "it does not begin with hgn1, and no network "+market.Printable(network)+" is known here")
	}
	return p.enter(*i)
}

// Members returns the list of the program's network; nil where none has come yet.
func (p Place) Members() (network string, list *market.Members, err error) {
	s, creator, err := p.current()
	if err != nil {
		return "", nil, err
	}
	list, err = p.Folder.Members(s.Network, creator)
	return s.Network, list, err
}

// Networks returns the private networks that the program knows.
func (p Place) Networks() ([]Network, error) {
	s, err := p.Read()
	if err != nil {
		return nil, err
	}
	key, err := p.Key()
	if err != nil {
		return nil, err
	}
	names, err := p.Folder.Networks()
	if err != nil {
		return nil, err
	}
	var all []Network
	for _, name := range names {
		i, err := p.Folder.Invitation(name)
		if err != nil {
			return nil, err
		}
		if i == nil || i.Network != name {
			continue
		}
		n := Network{Name: name, Creator: i.Creator, Mine: i.Creator == market.KeyOf(key), Current: name == s.Network}
		list, err := p.Folder.Members(name, i.Creator)
		if err != nil {
			return nil, err
		}
		if list != nil {
			n.Members, n.Seq = len(list.List), list.Seq
		}
		all = append(all, n)
	}
	return all, nil
}

// current returns the private network that the configuration names.
func (p Place) current() (Settings, market.Key, error) {
	s, err := p.Read()
	if err != nil {
		return Settings{}, market.Key{}, err
	}
	if s.Creator == "" {
		return Settings{}, market.Key{}, market.NewError(market.CodeBadRequest, "why", "network "+s.Network+" is not a private one: everybody belongs to it")
	}
	creator, err := market.ParseKey(s.Creator)
	return s, creator, err
}

// own returns the program's network and its key, which must be the creator's.
func (p Place) own() (string, ed25519.PrivateKey, error) {
	s, creator, err := p.current()
	if err != nil {
		return "", nil, err
	}
	key, err := p.Key()
	if err != nil {
		return "", nil, err
	}
	if market.KeyOf(key) != creator {
		return "", nil, market.NewError(market.CodeNotCreator, "network", s.Network, "creator", s.Creator)
	}
	return s.Network, key, nil
}

// change signs a changed list and keeps it. Its number is the time, and never below the one before: a list that was made after an
// older one was restored is the newer one for everybody.
func (p Place) change(network string, key ed25519.PrivateKey, change func(*market.Members)) (market.Members, error) {
	list, err := p.Folder.Members(network, market.KeyOf(key))
	if err != nil {
		return market.Members{}, err
	}
	if list == nil {
		list = &market.Members{Network: network}
	}
	change(list)
	now := p.Now().UnixMilli()
	list.Seq, list.Issued = max(list.Seq+1, now), now
	sealed, err := market.SealMembers(key, *list)
	if err != nil {
		return market.Members{}, err
	}
	if err := p.Folder.Save(network, sealed.Encode()); err != nil {
		return market.Members{}, err
	}
	return *list, p.owned(p.Folder.path(network, listEnding))
}

func (p Place) owned(path string) error {
	if p.Owned == nil {
		return nil
	}
	return p.Owned(string(p.Folder), path)
}
