package market_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"haggle/market"
)

func TestWritesAQueryInCanonicalForm(t *testing.T) {
	key := marketKey(7).String()
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{" \t\n ", ""},
		{
			"gpu_name=RTX_4090 num_gpus>=2 gpu_ram>=24 dph<0.6 geolocation in [DE,NL]",
			"gpu_name=RTX_4090 num_gpus>=2 gpu_ram>=24GB dph<0.60 geolocation in [DE,NL]",
		},
		{`gpu_name="RTX 4090"`, "gpu_name=RTX_4090"},
		{`gpu_name='RTX 40*'`, "gpu_name=RTX_40*"},
		{`rig="a(b" image='say "x"'`, `rig="a(b" image='say_"x"'`},
		{`rig="it's"`, `rig="it's"`},
		{"gpu == H100*", "gpu_name=H100*"},
		{"VRAM >= 24gib", "gpu_ram>=24GB"},
		{"gpu_ram>512MB", "gpu_ram>0.5GB"},
		{"gpu_ram>=1.5", "gpu_ram>=1.5GB"},
		{"disk_free>=1TB disk>93GiB", "disk_free>=1000GB disk_free>99.858GB"},
		{"gpu_power<=0.45kW power<300", "gpu_power<=450W gpu_power<300W"},
		{"max_duration>=120m min_duration<90s max_duration<168h", "max_duration>=2h min_duration<90s max_duration<7d"},
		{"max_duration>1ms min_duration=0s", "max_duration>1ms min_duration=0ms"},
		{"compute_cap>=8.9 cc<10", "compute_cap>=8.9 compute_cap<10"},
		{"driver>=535.129.03 cuda!=12", "driver>=535.129.3 cuda!=12"},
		{"ecc=TRUE display!=false", "ecc=true display!=false"},
		{"dph<=0.000001", "dph<=0.000001"},
		{`dph<"0.6"`, "dph<0.60"},
		{"geolocation notin [ US , 'CA' ]", "geolocation notin [US,CA]"},
		{"pcie_gen in [4,5]", "pcie_gen in [4,5]"},
		{"rig_key=" + key, "rig_key=" + key},
		{"dph=0.2..0.6 gpu_ram=24..48GB", "dph=0.20..0.60 gpu_ram=24GB..48GB"},
		{"max_duration=2..8h cuda=12.1..12 cc='8..9'", "max_duration=2h..8h cuda=12.1..12 compute_cap=8..9"},
		{"num_gpus=2..4", "num_gpus=2..4"},
		{"rig=a..b claim.x=a..b claim.y=1..3", "rig=a..b claim.x=a..b claim.y=1..3"},
		{"dph lte 0.6 gpu_ram gte 24 num_gpus gt 1 cc lt 9 ecc eq true rig neq x", "dph<=0.60 gpu_ram>=24GB num_gpus>1 compute_cap<9 ecc=true rig!=x"},
		{"geo not in [DE] geo nin [NL] rig not eq a rig noteq b", "geolocation notin [DE] geolocation notin [NL] rig!=a rig!=b"},
		{"inet_up>=100 inet_down>=0.5Gbit/s slot_up<1mbps", "inet_up>=100Mbit/s inet_down>=500Mbit/s slot_up<1Mbit/s"},
		{"rtt<=40 ping<250us", "rtt<=40ms rtt<0.25ms"},
		{"tflops>=82.6 flops_usd>1pflops", "tflops>=82.6TFLOPS tflop_per_dph>1000TFLOPS"},
		{"max_unattended=UNLIMITED credit<unlimited", "max_unattended=unlimited credit<unlimited"},
		{"residency_proof>=Address residency!=refuted", "residency_proof>=address residency_proof!=refuted"},
		{"claim.nvlink=true bw_nvlink>=300 claim.Paint=red claim.feeds>=2", "nvlink=true nvlink_bw>=300 claim.paint=red claim.feeds>=2"},
		{"total<=5 seen>=7d checked=true start<=1m", "total<=5.00 seen>=7d checked=true start_time<=1m"},
		{"gpu=A OR gpu=B ecc=true", "gpu_name=A OR gpu_name=B ecc=true"},
		{"gpu=A|gpu=B", "gpu_name=A OR gpu_name=B"},
		{"(gpu=A OR gpu=B) ecc=true", "(gpu_name=A OR gpu_name=B) ecc=true"},
		{"((gpu=A)) (ecc=true (display=false))", "gpu_name=A ecc=true display=false"},
		{"(gpu=A OR (gpu=B OR gpu=C))", "gpu_name=A OR gpu_name=B OR gpu_name=C"},
		{"ecc=true (gpu=A OR (gpu=B (dph<1 OR dph>2)))", "ecc=true (gpu_name=A OR gpu_name=B (dph<1.00 OR dph>2.00))"},
		{"(num_gpus=2) ecc=true", "num_gpus=2 ecc=true"},
	} {
		q := mustParse(t, c.text)
		if got := q.String(); got != c.want {
			t.Errorf("ParseQuery(%q) = %q, want %q", c.text, got, c.want)
		}
		if again := mustParse(t, q.String()); !reflect.DeepEqual(again, q) {
			t.Errorf("ParseQuery(%q) is another query than that of %q", q, c.text)
		}
	}
}

func TestRefusesAQueryThatIsWrong(t *testing.T) {
	for _, c := range []struct {
		text string
		code market.Code
		args string // name=value; of all that matter
	}{
		{"gpu_nam=RTX_4090", market.CodeUnknownField, "field=gpu_nam nearest=gpu_name"},
		{"price<1", market.CodeUnknownField, "field=price nearest=dph"},
		{"vrma>3", market.CodeUnknownField, "field=vrma nearest=gpu_ram"},
		{"external=false", market.CodeUnknownField, "field=external nearest=reach"},
		{"reliability>0.9", market.CodeUnknownField, "field=reliability nearest=seen"},
		{"claim.", market.CodeBadQuery, "at=character 1"},
		{"claim.=1", market.CodeUnknownField, "field=claim."},
		{"claims.x=1", market.CodeBadQuery, "at=character 1"},
		{"claim.x>=red", market.CodeBadUnit, "value=red field=claim.x"},
		{"dph=0.6..0.2", market.CodeBadQuery, "why=a range goes from the lower value to the higher"},
		{"cuda=13..12.4", market.CodeBadQuery, "why=a range goes"},
		{"dph=0.2..", market.CodeBadUnit, "field=dph"},
		{"dph=..2", market.CodeBadUnit, "field=dph"},
		{"dph!=0.2..0.6", market.CodeBadUnit, "value=0.2..0.6 field=dph"},
		{"dph in [0.2..0.6]", market.CodeBadUnit, "value=0.2..0.6"},
		{"ecc=true..false", market.CodeBadUnit, "value=true..false"},
		{"gpu_ram=24W..48", market.CodeBadUnit, "value=24W"},
		{"compute_cap>610", market.CodeBadUnit, "value=610 field=compute_cap expects=it takes a number such as 8.9, below 100"},
		{"inet_down>=100MB/s", market.CodeBadUnit, "value=100MB/s field=inet_down"},
		{"residency_proof>=sure", market.CodeBadUnit, "value=sure field=residency_proof"},
		{"geo not [DE]", market.CodeBadQuery, "at=character 1"},
		{"duration>24", market.CodeBadUnit, "value=24 field=max_duration"},
		{"gpu_ram>=24W", market.CodeBadUnit, "value=24W field=gpu_ram expects=it takes memory such as 24, 24GB or 512MB"},
		{"vram>=lots", market.CodeBadUnit, "value=lots field=gpu_ram"},
		{"gpu_power>1.0000001W", market.CodeBadUnit, "field=gpu_power"},
		{"gpu_power>0.0001W", market.CodeBadUnit, "field=gpu_power"},
		{"max_duration>2", market.CodeBadUnit, "field=max_duration"},
		{"max_duration>1.5ms", market.CodeBadUnit, "field=max_duration"},
		{"dph<0.1234567", market.CodeBadUnit, "value=0.1234567 field=dph"},
		{"dph<1e3", market.CodeBadUnit, "value=1e3 field=dph"},
		{"dph<-1", market.CodeBadUnit, "value=-1 field=dph"},
		{"dph<.5", market.CodeBadUnit, "value=.5 field=dph"},
		{"num_gpus>=1.5", market.CodeBadUnit, "field=num_gpus"},
		{"num_gpus>=1.", market.CodeBadUnit, "field=num_gpus"},
		{"num_gpus>=1234567890123", market.CodeBadUnit, "field=num_gpus"},
		{"compute_cap>8.95", market.CodeBadUnit, "field=compute_cap"},
		{"cuda>=12.4.", market.CodeBadUnit, "field=cuda"},
		{"cuda>=12.x", market.CodeBadUnit, "field=cuda"},
		{"driver=1.2.3.4.5", market.CodeBadUnit, "field=driver"},
		{"ecc=on", market.CodeBadUnit, "value=on field=ecc expects=it takes true or false, with = and !="},
		{"ecc in [true]", market.CodeBadUnit, "value=in field=ecc"},
		{"ecc<true", market.CodeBadUnit, "value=< field=ecc"},
		{"gpu_name<RTX", market.CodeBadUnit, "value=< field=gpu_name"},
		{"rig_key=12D3*", market.CodeBadUnit, "field=rig_key"},
		{"max_duration<999999999999d", market.CodeBadUnit, "field=max_duration"},
		{`gpu_name="RTX 4090`, market.CodeBadQuery, "at=character 10 why=the quote is not closed"},
		{`gpu_name=''`, market.CodeBadQuery, "at=character 10 why=the value is empty"},
		{"gpu_name=", market.CodeBadQuery, "at=its end why=a value is expected"},
		{"gpu_name=RTX 4090 ecc=true", market.CodeBadQuery, "at=character 14"},
		{"gpu_name=RTX=4090", market.CodeBadQuery, "at=character 13"},
		{"ecc", market.CodeBadQuery, "at=character 1"},
		{"ecc=true AND dph<1", market.CodeBadQuery, "at=character 10"},
		{"=4", market.CodeBadQuery, "at=character 1 why=the name of a field is expected"},
		{"ecc=true OR", market.CodeBadQuery, "at=its end why=a clause is missing"},
		{"OR ecc=true", market.CodeBadQuery, "at=character 1 why=a clause is missing"},
		{"ecc=true || dph<1", market.CodeBadQuery, "at=character 11"},
		{"()", market.CodeBadQuery, "at=character 2"},
		{"(ecc=true", market.CodeBadQuery, "at=character 1 why=the parenthesis is not closed"},
		{"ecc=true)", market.CodeBadQuery, "at=character 9 why=a parenthesis closes that never opened"},
		{"geolocation in DE", market.CodeBadQuery, "why=a list such as [DE,NL] is expected"},
		{"geolocation=[DE]", market.CodeBadQuery, "at=character 13 why=a list needs in or notin"},
		{"geolocation in []", market.CodeBadQuery, "at=character 17"},
		{"geolocation in [DE NL]", market.CodeBadQuery, "at=character 20"},
		{"geolocation in [DE,NL", market.CodeBadQuery, "at=its end"},
		{"é=1", market.CodeBadQuery, "at=character 1"},
		{"rig=é =1", market.CodeBadQuery, "at=character 7"},
		{"rig=a\x1b[2J", market.CodeBadQuery, "at=character 6 why=there is an invisible character"},
		{"rig=é\u200b", market.CodeBadQuery, "at=character 6"},
		{"rig=\u200b\u2014", market.CodeBadQuery, "at=character 5"},
		{"rig=\xff", market.CodeBadQuery, "at=character 5"},
		{"ecc=true OR num_gpus>1", market.CodeBadQuery, "at=character 1"},
		{"dph<1 (ecc=true | num_gpus>1 dph<2)", market.CodeBadQuery, "at=character 8"},
		{strings.Repeat("(", 9) + "ecc=true" + strings.Repeat(")", 9), market.CodeBadQuery, "at=character 9"},
		{strings.Repeat("ecc=true ", 65), market.CodeBadQuery, "why=there are more than 64 clauses"},
		{"pcie_gen in [" + strings.Repeat("1,", 64) + "1]", market.CodeBadQuery, "why=the list is longer than 64"},
		{strings.Repeat(" ", 1025), market.CodeBadQuery, "why=it is longer than 1024 bytes"},
		{strings.Repeat("dph in ["+strings.Repeat("1,", 60)+"1] ", 7), market.CodeBadQuery, "why=it is longer than 1024 bytes"},
	} {
		_, err := market.ParseQuery(c.text)
		if market.CodeOf(err) != c.code {
			t.Errorf("ParseQuery(%q): %v, want code %s", c.text, err, c.code)
			continue
		}
		e := market.Public(err)
		args := " "
		for _, a := range e.Args {
			args += a.Name + "=" + a.Value + " "
		}
		if !strings.Contains(args, " "+c.args) {
			t.Errorf("ParseQuery(%q): args%s, want %s", c.text, args, c.args)
		}
		if x := market.Explain(err); strings.Contains(x.Message+x.Hint, "{") {
			t.Errorf("ParseQuery(%q): a fact is missing in %q, %q", c.text, x.Message, x.Hint)
		}
	}
}

func TestEveryFieldHasHelpAndAnExampleThatParses(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range market.Fields() {
		for _, name := range append([]string{f.Name}, f.Aliases...) {
			if seen[name] {
				t.Errorf("two fields are called %s", name)
			}
			seen[name] = true
		}
		if f.Help == "" || f.Type == "" {
			t.Errorf("field %s has no help or no type", f.Name)
		}
		if q := mustParse(t, f.Example); !strings.HasPrefix(q.String(), f.Name) {
			t.Errorf("the example of field %s is %q", f.Name, f.Example)
		}
	}
}

func TestAQueryTravelsAsText(t *testing.T) {
	type saved struct{ Query market.Query }
	in := saved{mustParse(t, "gpu=RTX_40* dph<0.6")}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out saved
	if err := json.Unmarshal(data, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%s became %v: %v", data, out, err)
	}
	if err := json.Unmarshal([]byte(`{"Query":"gpu"}`), &out); err == nil {
		t.Error("a query that is wrong was read from JSON")
	}
}

func FuzzParseQuery(f *testing.F) {
	for _, field := range market.Fields() {
		f.Add(field.Example)
	}
	f.Add("dph=0.2..0.6 cuda=12.1..12.6 gpu_ram=24..48GB claim.x=1..2 claim.y!='a..b' max_duration=2..8h")
	f.Add("seen>=7d total<=5 residency_proof>=address within_km<=800 rtt<=40 geo not in [DE] dph lte 1")
	f.Add(`(gpu_name="RTX 4090" OR gpu=H100*) geolocation notin [DE,'N L'] | dph<=0.6`)
	offer := marketOffer("attic", marketSlot(0, "RTX_4090", 24564), marketSlot(1, "RTX_3060", 12288))
	row := fullRow()
	row.Job = &market.JobShape{Slots: 1, DurationMs: 3_600_000, Image: "train"}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := market.ParseQuery(text)
		if err != nil {
			if code := market.CodeOf(err); code != market.CodeBadQuery && code != market.CodeBadUnit && code != market.CodeUnknownField {
				t.Fatalf("%q: code %s", text, code)
			}
			return
		}
		canonical := q.String()
		again, err := market.ParseQuery(canonical)
		if err != nil || !reflect.DeepEqual(q, again) || again.String() != canonical {
			t.Fatalf("%q is %q, which is %q: %v", text, canonical, again, err)
		}
		_, ok := q.Match(offer)
		if funnel := q.Explain([]market.Offer{offer}); (funnel.Matches == 1) != ok || (funnel.Nearest == nil) != ok {
			t.Fatalf("%q: Match says %v, Explain %+v", text, ok, funnel)
		}
		_, ok = q.MatchRow(row)
		if funnel := q.ExplainRows([]market.Row{row}); (funnel.Matches == 1) != ok || (funnel.Nearest == nil) != ok {
			t.Fatalf("%q: MatchRow says %v, ExplainRows %+v", text, ok, funnel)
		}
	})
}

func ExampleParseQuery() {
	q, err := market.ParseQuery(`gpu="RTX 4090" vram>=24 dph<0.6 geo in [DE,NL]`)
	fmt.Println(q, err)
	_, err = market.ParseQuery("gpu_nam=RTX_4090")
	fmt.Println(err)
	fmt.Println(market.Explain(err).Hint)
	// Output:
	// gpu_name=RTX_4090 gpu_ram>=24GB dph<0.60 geolocation in [DE,NL] <nil>
	// there is no field gpu_nam
	// did you mean gpu_name? `haggle fields` lists all fields
}
