package renter

import (
	"context"
	"fmt"
)

// settings returns the user's choices.
func (a *Agent) settings(ctx context.Context) (Settings, error) {
	s, err := a.cfg.Store.Settings(ctx)
	if err != nil {
		return s, fmt.Errorf("read the settings: %w", err)
	}
	return s, nil
}

// changeSettings changes the user's choices on disk. Any goroutine may call it; an error of change changes nothing.
func (a *Agent) changeSettings(ctx context.Context, change func(*Settings) error) error {
	a.choosing.Lock()
	defer a.choosing.Unlock()
	s, err := a.settings(ctx)
	if err != nil {
		return err
	}
	if err := change(&s); err != nil {
		return err
	}
	if err := a.cfg.Store.SaveSettings(ctx, s); err != nil {
		return fmt.Errorf("save the settings: %w", err)
	}
	return nil
}
