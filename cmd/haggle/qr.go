package main

import (
	"io"
	"strings"

	"rsc.io/qr"
)

const (
	qrMost  = 1 << 10 // bytes of a text that is still drawn: more fits no screen
	qrQuiet = 2       // white modules around the code; readers want some
)

// drawQR draws a text as a QR code onto a terminal; elsewhere, and where the text is too long for a screen, it draws nothing.
func drawQR(w io.Writer, text string) {
	if text == "" || len(text) > qrMost || !isTTY(w) {
		return
	}
	_, _ = io.WriteString(w, halfBlocks(text)) // where stderr is closed nobody looks
}

// halfBlocks writes a code, two rows of modules in each line, black on white whatever the terminal's colours are. It is empty for a
// text that no code holds.
func halfBlocks(text string) string {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for y := -qrQuiet; y < code.Size+qrQuiet; y += 2 {
		b.WriteString("\x1b[30;107m")
		for x := -qrQuiet; x < code.Size+qrQuiet; x++ {
			switch upper, lower := code.Black(x, y), code.Black(x, y+1); {
			case upper && lower:
				b.WriteRune('█')
			case upper:
				b.WriteRune('▀')
			case lower:
				b.WriteRune('▄')
			default:
				b.WriteByte(' ')
			}
		}
		b.WriteString("\x1b[0m\n")
	}
	return b.String()
}
