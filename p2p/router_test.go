package p2p_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/p2p"
	"haggle/p2p/p2ptest"
)

func TestARouterThatSpeaksUPnPOpensAndClosesPinholes(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	router := p2ptest.ServeRouter(ctx, l, "5.6.7.8")
	pins := p2p.NewPins(router.URL)
	if !pins.Update(ctx, "[2a00::7]:4701") {
		t.Error("the router failed")
	}
	want := []p2ptest.Pinhole{{Client: "2a00::7", Port: 4701, Protocol: 17, Lease: 3600}, {Client: "2a00::7", Port: 4701, Protocol: 6, Lease: 3600}}
	if diff := cmp.Diff(want, router.Pinholes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	router.Restart()
	pins.Age()
	if !pins.Update(ctx, "[2a00::7]:4701") || len(router.Pinholes()) != 2 {
		t.Errorf("after a restart: %v", router.Pinholes())
	}
	pins.Close(ctx)
	if open := router.Pinholes(); len(open) != 0 {
		t.Errorf("left open: %v", open)
	}
	router.ShutFirewall()
	if pins := p2p.NewPins(router.URL); pins.Update(ctx, "[2a00::7]:4701") {
		t.Error("a firewall that is shut was opened")
	}
}
