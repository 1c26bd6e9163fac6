package market_test

import (
	"strings"
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

func TestAJobMayBringWhatItsBidSaysAndItsRigTakes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*market.Offer, *market.Bid, *market.Job)
		code   market.Code
	}{
		"nothing is brought":              {func(*market.Offer, *market.Bid, *market.Job) {}, ""},
		"files":                           {func(_ *market.Offer, b *market.Bid, _ *market.Job) { b.Upload = 5 }, ""},
		"an image":                        {func(_ *market.Offer, b *market.Bid, j *market.Job) { b.Upload, j.Archive = 1<<30, 1<<30 }, ""},
		"an image and files":              {func(_ *market.Offer, b *market.Bid, j *market.Job) { b.Upload, j.Archive = 10_000_000_001+1<<30, 1<<30 }, ""},
		"more files than the disk holds":  {func(_ *market.Offer, b *market.Bid, j *market.Job) { b.Upload, j.Archive = 10_000_000_002+1<<30, 1<<30 }, market.CodeBadLimits},
		"an image that the bid hides":     {func(_ *market.Offer, b *market.Bid, j *market.Job) { b.Upload, j.Archive = 4, 5 }, market.CodeBadRecord},
		"an image too large":              {func(_ *market.Offer, b *market.Bid, j *market.Job) { b.Upload, j.Archive = 65<<30, 65<<30 }, market.CodeBadRecord},
		"an image of negative size":       {func(_ *market.Offer, _ *market.Bid, j *market.Job) { j.Archive = -1 }, market.CodeBadRecord},
		"an image that no rig takes":      {func(o *market.Offer, b *market.Bid, j *market.Job) { o.Rules.Brings, b.Upload, j.Archive = false, 5, 5 }, market.CodeNoBring},
		"a folder to work in":             {func(_ *market.Offer, _ *market.Bid, j *market.Job) { j.Workdir = "/work/a b" }, ""},
		"a folder that is not absolute":   {func(_ *market.Offer, _ *market.Bid, j *market.Job) { j.Workdir = "work" }, market.CodeBadRecord},
		"a folder that is not clean":      {func(_ *market.Offer, _ *market.Bid, j *market.Job) { j.Workdir = "/work/../etc" }, market.CodeBadRecord},
		"a folder with a zero byte":       {func(_ *market.Offer, _ *market.Bid, j *market.Job) { j.Workdir = "/work\x00" }, market.CodeBadRecord},
		"a folder of a kilobyte and more": {func(_ *market.Offer, _ *market.Bid, j *market.Job) { j.Workdir = "/" + strings.Repeat("x", 1024) }, market.CodeBadRecord},
		"as many secrets as there may be": {func(_ *market.Offer, _ *market.Bid, j *market.Job) { j.Secrets = 32 }, ""},
		"more secrets than there may be":  {func(_ *market.Offer, _ *market.Bid, j *market.Job) { j.Secrets = 33 }, market.CodeBadRecord},
	} {
		o, b, j := markettest.Offer(), markettest.Bid(), markettest.Job()
		o.Rules.Brings = true
		c.change(&o, &b, &j)
		b.Job = j.Hash()
		if err := market.AdmitJob(o, b, j); market.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := market.AdmitJob(markettest.Offer(), market.Bid{}, markettest.Job()); market.CodeOf(err) != market.CodeBadRecord {
		t.Errorf("another job than that of the bid: %v", err)
	}
}

func TestPreparingGetsTwiceTheTimeOfTheUpload(t *testing.T) {
	o := markettest.Offer()
	const minute = int64(60_000)
	gigabit, slow := int64(1e9), int64(1000)
	for name, c := range map[string]struct {
		bytes, promised int64
		claimed         *int64
		want            int64
	}{
		"nothing":                          {0, 0, nil, 3 * minute},
		"little":                           {1 << 20, 0, nil, 3 * minute},
		"an image on an unknown link":      {1_500_000_000, 0, nil, 20 * minute},
		"an image on the rig's own link":   {45_000_000_000, 0, &gigabit, 12 * minute},
		"an image on what slots get of it": {1_500_000_000, 100_000_000, &gigabit, 4 * minute},
		"an image on a very slow link":     {1_500_000_000, 0, &slow, 60 * minute},
		"an absurd number":                 {1 << 62, 0, nil, 60 * minute},
	} {
		o.Host.SlotDown, o.Net.Down = c.promised, c.claimed
		if got := market.PrepareFor(o, 1, c.bytes); got != c.want {
			t.Errorf("%s: %d ms, not %d", name, got, c.want)
		}
	}
}

func TestABidAndALeaseBoundWhatIsSent(t *testing.T) {
	for _, upload := range []int64{-1, 1<<44 + 1} {
		b, terms := markettest.Bid(), markettest.Terms()
		b.Upload, terms.Upload = upload, upload
		if err := b.Validate(); market.CodeOf(err) != market.CodeBadRecord {
			t.Errorf("a bid with an upload of %d: %v", upload, err)
		}
		raw := market.SealTerms(markettest.Network, markettest.Rig(), terms).Encode()
		if _, _, err := market.OpenGrant(markettest.Network, raw); market.CodeOf(err) != market.CodeBadRecord {
			t.Errorf("terms with an upload of %d: %v", upload, err)
		}
	}
}

func TestSecretsAreAsManyAsTheJobSaysAndWellFormed(t *testing.T) {
	secret := func(name string, size int) market.Secret {
		return market.Secret{Name: name, Value: make([]byte, size)}
	}
	for name, c := range map[string]struct {
		said    uint8
		secrets []market.Secret
		fits    bool
	}{
		"none":               {0, nil, true},
		"two":                {2, []market.Secret{secret("HF_TOKEN", 40), secret("a.key", 48<<10-40)}, true},
		"one that is missed": {2, []market.Secret{secret("a", 1)}, false},
		"one too many":       {0, []market.Secret{secret("a", 1)}, false},
		"too large":          {2, []market.Secret{secret("a", 40<<10), secret("b", 8<<10+1)}, false},
		"the same twice":     {2, []market.Secret{secret("a", 1), secret("a", 1)}, false},
		"a path":             {1, []market.Secret{secret("../a", 1)}, false},
		"the folder":         {1, []market.Secret{secret(".", 1)}, false},
		"the folder above":   {1, []market.Secret{secret("..", 1)}, false},
		"no name":            {1, []market.Secret{secret("", 1)}, false},
	} {
		if err := market.CheckSecrets(market.Job{Secrets: c.said}, c.secrets); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}
