package market_test

import (
	"bufio"
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/market"
)

// asWeReadIt says in one line what becomes of a query or of an order.
func asWeReadIt(text string) string {
	if by, isOrder := strings.CutPrefix(text, "-o "); isOrder {
		if err := market.Rank(nil, by); err != nil {
			return "! " + err.Error() + "; " + market.Explain(err).Hint
		}
		return "=> sorts by " + by
	}
	q, err := market.ParseQuery(text)
	if err != nil {
		return "! " + err.Error() + "; " + market.Explain(err).Hint
	}
	return "=> " + q.String()
}

func TestQueriesOfVastAreReadOrRefusedAloud(t *testing.T) {
	const file = "testdata/vast/queries.txt"
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	read := 0
	for lines := bufio.NewScanner(bytes.NewReader(golden)); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "    ") {
			continue
		}
		got.WriteString(line + "\n")
		if line != "" && line[0] != '#' {
			read++
			got.WriteString("    " + asWeReadIt(line) + "\n")
		}
	}
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(golden), got.String()); diff != "" && !*update || read < 30 {
		t.Errorf("%d queries; -golden +got:\n%s", read, diff)
	}
}
