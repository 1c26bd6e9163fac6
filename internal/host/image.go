package host

import (
	"fmt"
	"path"
	"strings"

	"haggle/market"
	"haggle/runtime"
)

// ImageRules say which images a rig's owner lets run. A rule is a digest (sha256:…) or a pattern for an image's name, with * and ?
// as path.Match reads them. An image that a rule of Deny fits never runs. Where Allow has rules, one of them must fit.
type ImageRules struct {
	Allow, Deny []string
}

// maxImageRules bounds each list; an owner with more means another thing.
const maxImageRules = 256

func (r ImageRules) validate() error {
	for _, list := range [][]string{r.Allow, r.Deny} {
		if len(list) > maxImageRules {
			return fmt.Errorf("rig has %d rules for images: at most %d", len(list), maxImageRules)
		}
		for _, rule := range list {
			if _, err := path.Match(rule, ""); err != nil || rule == "" {
				return fmt.Errorf("rig cannot use the rule %q for images: it is no digest and no pattern", rule)
			}
		}
	}
	return nil
}

// check returns the market's error, with the rule, for an image that may not run.
func (r ImageRules) check(i runtime.Image) error {
	if rule, denied := fits(r.Deny, i); denied {
		return r.refuse(i, "it fits "+rule+", which is denied")
	}
	if _, allowed := fits(r.Allow, i); len(r.Allow) > 0 && !allowed {
		return r.refuse(i, "it is not among those that are allowed")
	}
	return nil
}

func (r ImageRules) refuse(i runtime.Image, why string) error {
	allowed := strings.Join(r.Allow, ", ")
	if allowed == "" {
		allowed = "all but " + strings.Join(r.Deny, ", ")
	}
	return market.NewError(market.CodeImageRefused, "image", i.Name, "why", why, "allowed", allowed)
}

// fits finds a rule that an image fits.
func fits(rules []string, i runtime.Image) (string, bool) {
	for _, rule := range rules {
		match, err := path.Match(rule, i.Name)
		if rule == i.Digest || err == nil && match {
			return rule, true
		}
	}
	return "", false
}
