package cli

import (
	"fmt"
	"strings"

	"haggle/internal/view"
)

// Sources says in facts what the sources of first peers gave.
func Sources(sources []view.PeerSource) []string {
	var facts, off []string
	name := "found by"
	for _, s := range sources {
		if !s.On {
			off = append(off, s.Name+" ("+s.Reason+")")
			continue
		}
		text := fmt.Sprintf("%s: %d named, %d connected", s.Name, s.Found, s.Connected)
		if s.AnnouncedMs > 0 {
			text += ", this program is announced there"
		}
		if s.Reason != "" {
			text += "; " + s.Reason
		}
		facts = append(facts, name, text)
		name = ""
	}
	if len(off) > 0 {
		facts = append(facts, name, "not asked: "+strings.Join(off, ", "))
	}
	return facts
}
