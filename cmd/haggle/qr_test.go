package main

import (
	"strings"
	"testing"

	"rsc.io/qr"
)

func TestDrawsEveryModuleOfAQRCode(t *testing.T) {
	const text = "pay:ada?a=0.12&r=30d65cd8"
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(halfBlocks(text), "\n"), "\n")
	for n, line := range lines {
		line = strings.TrimSuffix(strings.TrimPrefix(line, "\x1b[30;107m"), "\x1b[0m")
		runes := []rune(line)
		if len(runes) != code.Size+2*qrQuiet {
			t.Fatalf("line %d has %d columns for %d modules", n, len(runes), code.Size)
		}
		for x, r := range runes {
			for half, black := range []bool{r == '█' || r == '▀', r == '█' || r == '▄'} {
				if want := code.Black(x-qrQuiet, 2*n+half-qrQuiet); black != want {
					t.Errorf("module %d, %d is black: %v, want %v", x-qrQuiet, 2*n+half-qrQuiet, black, want)
				}
			}
		}
	}
	if want := (code.Size + 2*qrQuiet + 1) / 2; len(lines) != want {
		t.Errorf("%d lines, want %d", len(lines), want)
	}
}

func TestDrawsNoQRCodeWhereNobodyLooks(t *testing.T) {
	var out strings.Builder
	drawQR(&out, "pay:ada")
	if out.Len() > 0 {
		t.Errorf("a code in a pipe: %q", out.String())
	}
	if got := halfBlocks(strings.Repeat("x", 10_000)); got != "" {
		t.Errorf("a code of a text that none holds: %d bytes", len(got))
	}
}
