//go:build linux

package e2e_test

import (
	"strings"
	"testing"
)

func TestAQueryThatMakesNoSenseIsRefusedWithTheNearestField(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3)
	for _, c := range []struct{ name, query, sentence string }{
		{"an unknown field", "gpu_nam=RTX_4090", "there is no field gpu_nam (hint: did you mean gpu_name?"},
		{"another unknown field", "num_gpu>=2", "there is no field num_gpu (hint: did you mean num_gpus?"},
		{"a wrong unit", "gpu_ram>=24h", "24h does not fit field gpu_ram (hint: it takes memory"},
		{"a word where a number belongs", "dph<cheap", "cheap does not fit field dph (hint: "},
		{"an unclosed quote", `gpu_name="RTX 4090`, "the query stops making sense at character 10: the quote is not closed (hint: example: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := l.in(t)
			wantRefusal(t, l.haggle("offers", c.query).wants(2), c.sentence)
			wantRefusal(t, l.haggle(order("bid", map[string]string{"--offer": ""}, c.query)...).wants(2), c.sentence)
			wantRefusal(t, l.haggle(order("run", map[string]string{"--offer": ""}, c.query)...).wants(125), c.sentence)
		})
	}
	t.Run("a query without a match is explained clause by clause", func(t *testing.T) {
		p := l.in(t).haggle("offers", "gpu_name=RTX_* dph<0.10", "--explain").wants(3)
		for _, want := range []string{"all known offers  3", "gpu_name=RTX_*    2", "dph<0.10          0", "nearest: rig-2 misses dph<0.10 (it is 0.18"} {
			if !strings.Contains(p.out.String(), want) {
				t.Errorf("the funnel has no %q:\n%s", want, p.out.String())
			}
		}
		if said := p.err.String(); !oneLine.MatchString(said) {
			t.Errorf("stderr is %q, want one line with a hint", said)
		}
	})
	l.wantUntouched()
}
