package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// serve is what a job listens with: serve sets PORT to its port and LOCAL to one that is free.
func serve(ts *testscript.TestScript, _ bool, _ []string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "the job was asked for %s", r.URL)
	}))
	ts.Defer(server.Close)
	free, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv("PORT", portIn(server.Listener))
	ts.Setenv("LOCAL", portIn(free))
	ts.Check(free.Close())
}

func portIn(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// fetch wants a text from a page: fetch URL TEXT. It waits until somebody answers.
func fetch(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(wait(args[0]+" answers "+args[1], func() bool {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, args[0], nil)
		ts.Check(err)
		answer, err := client.Do(request)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
		return err == nil && strings.Contains(string(text), args[1])
	}))
}
