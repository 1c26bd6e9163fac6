package api_test

import (
	"context"

	"haggle/internal/view"
)

func (f *fakeAgent) Ping(_ context.Context, who string) (view.Ping, error) {
	return view.Ping{Key: "12D3KooWfake", Path: "punched", RTTMs: 31.5, Addr: "/ip4/192.0.2.7/udp/4701/quic-v1"}, f.note("ping %s", who)
}
