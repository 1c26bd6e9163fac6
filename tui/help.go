package tui

import "slices"

// help is the list of keys over a page. It is made of the key table.
type help struct {
	of     scope
	scroll int
	shown  int
}

func (h *help) do(a act) (handled bool) {
	g := grid{rows: h.shown}
	by, moved := g.step(a, 0)
	if moved {
		h.scroll = max(0, h.scroll+by)
	}
	return moved
}

// render shows the keys of the page below, then those of every page.
func (h *help) render(look theme, version string, width, height int) []string {
	title := func(s string) string { return " " + look.strong.on(s) }
	lines := []string{title("Keys of this page")}
	list := func(bs []binding) {
		for _, b := range bs {
			if b.help == "" {
				continue
			}
			text := wrap(look.named(b.help), max(8, width-15))
			for i, l := range text {
				key := ""
				if i == 0 {
					key = look.named(b.show)
				}
				lines = append(lines, "  "+look.accent.on(fit(key, 11, false, look.sign.more))+" "+l)
			}
		}
	}
	list(own(h.of))
	lines = append(lines, "", title("Everywhere"))
	list(everywhere())
	lines = append(lines, "", " "+look.faint.on("haggle "+clean(version)))
	h.shown = height
	h.scroll = max(0, min(h.scroll, len(lines)-height))
	return block(slices.Clone(lines[h.scroll:]), width, height)
}
