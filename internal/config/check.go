package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The forms of texts, compiled once and never written to again.
var (
	networkForm  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	nameForm     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	currencyForm = regexp.MustCompile(`^[A-Z]{3,8}$`)
	priceForm    = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,6})?$`)
)

// labPrefix begins the name of every lab's network.
const labPrefix = "lab-"

func checkNetwork(s string) error {
	if !networkForm.MatchString(s) {
		return errors.New("is not made of small letters, digits and dashes, at most 63")
	}
	return nil
}

func checkName(s string) error {
	if !nameForm.MatchString(s) {
		return fmt.Errorf("holds %.80q, which is not a name of letters, digits, dots, dashes and underscores, at most 64", s)
	}
	return nil
}

// orNothing lets a check pass an empty text.
func orNothing(check func(string) error) func(string) error {
	return func(s string) error {
		if s == "" {
			return nil
		}
		return check(s)
	}
}

func checkCurrency(s string) error {
	if !currencyForm.MatchString(s) {
		return errors.New("is not a currency of 3 to 8 capital letters, such as USD")
	}
	return nil
}

func checkPrice(s string) error {
	if !priceForm.MatchString(s) {
		return errors.New(`is not a price such as "0.40", with at most six digits after the point`)
	}
	return nil
}

// checkAddress looks at a multiaddr's shape only.
func checkAddress(s string) error {
	if !strings.HasPrefix(s, "/") || strings.ContainsAny(s, " \t\n") {
		return fmt.Errorf("holds %.80q, which is not an address such as /ip4/192.0.2.7/tcp/4701", s)
	}
	return nil
}

func checkBootstrap(s string) error {
	if checkAddress(s) != nil || !strings.Contains(s, "/p2p/") {
		return fmt.Errorf("holds %.80q, which is not an address such as /ip4/192.0.2.7/tcp/4701/p2p/12D3KooW…", s)
	}
	return nil
}

func checkFolder(s string) error {
	if !strings.HasPrefix(s, "/") {
		return fmt.Errorf("holds %.80q, which is not an absolute path", s)
	}
	return nil
}

// checkAbsolute is checkFolder on any system.
func checkAbsolute(s string) error {
	if !filepath.IsAbs(s) {
		return fmt.Errorf("holds %.80q, which is not an absolute path", s)
	}
	return nil
}

// checkSocket wants a path that every system takes for a socket.
func checkSocket(s string) error {
	if !filepath.IsAbs(s) || filepath.Clean(s) != s || len(s) > maxSocket {
		return fmt.Errorf("is %.120q, and must be a clean absolute path of at most %d bytes", s, maxSocket)
	}
	return nil
}

// oneOf lets only some words pass.
func oneOf(words ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(words, s) {
			return &notAWord{s, words}
		}
		return nil
	}
}

// notAWord says that a text is none of the words that may stand there.
type notAWord struct {
	text  string
	words []string
}

func (e *notAWord) Error() string {
	return fmt.Sprintf("is %.40q, and must be one of %s", e.text, strings.Join(e.words, ", "))
}

// near returns the word that was meant, or "" where nobody can tell.
func (e *notAWord) near() string {
	word := nearest(clip(e.text), e.words)
	if distance(clip(e.text), word) > 2 {
		return ""
	}
	return word
}

// cleanHost makes a rig's name of a machine's: its first label, which tells no domain, without what names may not hold.
func cleanHost(host string) string {
	host, _, _ = strings.Cut(host, ".")
	host = strings.Map(func(r rune) rune {
		if r < 0x80 && nameForm.MatchString("x"+string(r)) {
			return r
		}
		return -1
	}, host)
	host = strings.TrimLeft(host, "._-")
	if host == "" {
		return "rig"
	}
	return host[:min(len(host), 64)]
}
