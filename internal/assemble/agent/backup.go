package agent

import (
	"context"

	"haggle/internal/assemble"
	"haggle/internal/config"
	"haggle/internal/store"
	"haggle/internal/view"
)

// Backup copies the agent's database into a file that must not exist yet.
func (a *Agent) Backup(ctx context.Context, path string) (view.Backup, error) {
	return assemble.Backup(a.store.Backup(ctx, path))
}

// Restore puts a copy in the place of the database of an agent that does not run: see store.RestoreAgent.
func Restore(ctx context.Context, cfg config.Agent, from string) (store.Restored, error) {
	return assemble.Restore(ctx, from, cfg.Network, cfg.Paths, store.RestoreAgent)
}

// copies makes a copy of the agent's database every day.
func (a *Agent) copies() store.Keeper {
	return store.Keeper{Folder: assemble.Copies(a.cfg.Agent.Paths), Name: "haggle-", Backup: a.store.Backup, Log: a.log}
}
