package api_test

import (
	"context"

	"haggle/internal/view"
	"haggle/market"
)

func (f *fakeAgent) Blocked(context.Context) ([]view.Blocked, error) {
	until := int64(7)
	return []view.Blocked{{Net: "203.0.113.0/24", By: "config"}, {Key: "k", Why: "rude", By: "user", Until: &until}}, f.note("blocked")
}

func (f *fakeAgent) Block(_ context.Context, key market.Key, r view.BlockRequest) error {
	return f.note("block %s %+v", key.Short(), r)
}

func (f *fakeAgent) Unblock(_ context.Context, key market.Key) error {
	return f.note("unblock %s", key.Short())
}

func (f *fakeAgent) GivenNames(context.Context) ([]view.GivenName, error) {
	return []view.GivenName{{Name: "attic", Key: "k", Calls: "rig-1"}}, f.note("names")
}

func (f *fakeAgent) GiveName(_ context.Context, who, name string) (view.GivenName, error) {
	return view.GivenName{Name: name, Key: who}, f.note("name %s %s", who, name)
}
