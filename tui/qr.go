package tui

import (
	"strings"

	"rsc.io/qr"
)

const (
	codeMost  = 1 << 10 // bytes of a text that is still drawn
	codeQuiet = 2       // light modules around the code
)

// qrCode draws a text as a QR code of half blocks, two rows of modules a line: light modules are drawn and dark ones are not. It
// returns no line where the text is empty, too long, or the terminal has only ASCII.
func qrCode(text string, look theme) []string {
	if text == "" || len(text) > codeMost || look.sign.block == "" {
		return nil
	}
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return nil
	}
	light := func(x, y int) bool { return !code.Black(x, y) } // outside the code is light
	var out []string
	for y := -codeQuiet; y < code.Size+codeQuiet; y += 2 {
		var b strings.Builder
		for x := -codeQuiet; x < code.Size+codeQuiet; x++ {
			upper, lower := light(x, y), light(x, y+1)
			switch {
			case upper && lower:
				b.WriteString(look.sign.block)
			case upper:
				b.WriteString(look.sign.upper)
			case lower:
				b.WriteString(look.sign.lower)
			default:
				b.WriteByte(' ')
			}
		}
		out = append(out, look.code.on(b.String()))
	}
	return out
}
