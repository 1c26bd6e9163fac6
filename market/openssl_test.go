package market_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

// requirePrograms skips a test where a program of Debian's is missing, and fails it under CI=true.
func requirePrograms(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is missing: scripts/setup.sh installs it", name)
			}
			t.Skipf("%s is missing", name)
		}
	}
}

// byOpenssl runs the recipe of docs/protocol.md on a file's bytes.
func byOpenssl(t *testing.T, data []byte, args ...string) (lines []string, ok bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "bash", append([]string{"../scripts/verify-receipt.sh", file}, args...)...).Output()
	return strings.Split(strings.TrimSpace(string(out)), "\n"), err == nil
}

func TestAReceiptCanBeCheckedByOpensslAlone(t *testing.T) {
	requirePrograms(t, "bash", "openssl", "od")
	e := markettest.Paid()
	lines, ok := byOpenssl(t, e.Encode())
	if !ok || len(lines) != 16 { // offer, bid, lease 2, receipts 6, outcome 2, guarantee, payments 2, notice
		t.Fatalf("%d signatures, all good %t:\n%s", len(lines), ok, strings.Join(lines, "\n"))
	}
	sealed, err := market.DecodeSealed(e.Receipts[0])
	if err != nil {
		t.Fatal(err)
	}
	deputy := market.KeyOf(markettest.Deputy())
	want := "receipt " + sealed.Hash().String() + " renter " + market.Hash(deputy).String() + " ok"
	if lines, ok := byOpenssl(t, e.Redact().Encode(), "receipt"); !ok || len(lines) != 2 {
		t.Errorf("of the redacted file: %q", lines)
	}
	lines, ok = byOpenssl(t, e.Receipts[0])
	if !ok || len(lines) != 2 || lines[1] != want {
		t.Errorf("of the receipt alone: %q, want %q", lines, want)
	}
}

func TestOpensslSeesWhatIsForged(t *testing.T) {
	requirePrograms(t, "bash", "openssl", "od")
	sealed, err := market.DecodeSealed(markettest.Paid().Receipts[1])
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*market.Sealed){
		"another body":      func(s *market.Sealed) { s.Body = append([]byte(nil), s.Body...); s.Body[len(s.Body)-1] ^= 1 },
		"another network":   func(s *market.Sealed) { s.Network = "main" },
		"another kind":      func(s *market.Sealed) { s.Kind = market.KindOutcome },
		"another role":      func(s *market.Sealed) { s.Sigs[1].Role = market.RoleOwner },
		"another's key":     func(s *market.Sealed) { s.Sigs[1].Key = market.KeyOf(markettest.Deputy()) },
		"another signature": func(s *market.Sealed) { s.Sigs[0].Bytes = s.Sigs[1].Bytes },
	} {
		forged := sealed
		forged.Sigs = append([]market.Signature(nil), sealed.Sigs...)
		change(&forged)
		if lines, ok := byOpenssl(t, forged.Encode()); ok || !strings.Contains(strings.Join(lines, "\n"), " BAD") {
			t.Errorf("%s: %q", name, lines)
		}
	}
}
