package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// hooked sends one message to a server on loopback that answers with each code in turn, and returns what arrived, and the error.
func hooked(t *testing.T, codes ...int) ([]string, error) {
	t.Helper()
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type")+" "+string(body))
		if code := codes[len(got)-1]; code/100 == 3 {
			http.Redirect(w, r, "/elsewhere", code)
		} else {
			w.WriteHeader(code)
		}
	}))
	defer server.Close()
	h, err := newWebhook(server.URL + "/hook")
	if err != nil {
		t.Fatal(err)
	}
	h.pause = 1
	err = h.send(t.Context(), []byte(`{"change":"new"}`))
	return got, err
}

func TestAWebhookHearsOfAMatchAndIsTriedAgain(t *testing.T) {
	const message = `POST /hook application/json {"change":"new"}`
	for _, test := range []struct {
		codes []int
		tries int
		fails string
	}{
		{[]int{204}, 1, ""},
		{[]int{503, 429, 200}, 3, ""},
		{[]int{500, 500, 500}, 3, "answers 500"},
		{[]int{404}, 1, "answers 404"},
		{[]int{302}, 1, "redirects are not followed"},
	} {
		got, err := hooked(t, test.codes...)
		if !slices.Equal(got, slices.Repeat([]string{message}, test.tries)) {
			t.Errorf("%v: %q arrived", test.codes, got)
		}
		if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%v: %v", test.codes, err)
		}
	}
}

func TestAWebhookWithoutTLSGoesToThisMachineOnly(t *testing.T) {
	for _, bad := range []string{"", "nowhere", "ftp://localhost/", "http://", "javascript:alert(1)"} {
		if _, err := newWebhook(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	h, err := newWebhook("http://192.0.2.1:9/")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.send(t.Context(), nil); !errors.Is(err, errNotHere) {
		t.Errorf("another machine is told: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.send(ctx, nil); err == nil {
		t.Error("it goes on after the end")
	}
}

func TestACommandIsSplitIntoWords(t *testing.T) {
	for text, want := range map[string][]string{
		"notify-send haggle":        {"notify-send", "haggle"},
		`sh -c 'echo "a b" | wc'`:   {"sh", "-c", `echo "a b" | wc`},
		"  a\t\"b c\"d '' $HOME;x ": {"a", "b cd", "", "$HOME;x"},
		"":                          nil,
		"'a":                        nil,
		`"" x`:                      nil,
	} {
		got, err := splitCommand(text)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestAResidencyIsReadFromTheCommandLine(t *testing.T) {
	for text, want := range map[string]string{
		"DE":               "in DE only, signed by the rig, on its word",
		"nl,DE,NL:address": "in DE, NL only, signed by the rig; its address was there when this side signed",
		"DE:round-trip":    "in DE only, signed by the rig; its address was there when this side signed, and the round trip fitted",
		"":                 "",
	} {
		r, err := parseResidency(text)
		if err != nil || place(r) != want {
			t.Errorf("%q: %q, %v", text, place(r), err)
		}
	}
	for _, bad := range []string{":address", "DEU", "DE:proven", "DE,", "DE:", "1E", "DE:refuted"} {
		if _, err := parseResidency(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
