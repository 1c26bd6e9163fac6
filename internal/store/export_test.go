package store

import "context"

// Steps returns how many versions of their schemas this program knows.
func Steps() (rig, agent int) { return len(rigSchema().steps), len(agentSchema().steps) }

// MakeOldRig makes a rig's database as the version with that many steps left it.
func MakeOldRig(ctx context.Context, path string, steps int) error {
	s := rigSchema()
	s.steps = s.steps[:steps]
	d, err := open(ctx, path, s)
	if err != nil {
		return err
	}
	return d.close()
}

// MakeOldAgent makes an agent's database as the version with that many steps left it.
func MakeOldAgent(ctx context.Context, path string, steps int) error {
	s := agentSchema()
	s.steps = s.steps[:steps]
	d, err := open(ctx, path, s)
	if err != nil {
		return err
	}
	return d.close()
}

// Source is the name under which the driver opens a file.
func Source(path string) string { return source(path) }

// Hold keeps a rig's changes waiting until the function that it returns is called. Waiting tells how many wait.
func (r *Rig) Hold() (release func()) {
	r.db.group.turn <- struct{}{}
	return func() { <-r.db.group.turn }
}

// Waiting tells how many changes wait for their turn.
func (r *Rig) Waiting() int {
	r.db.group.mu.Lock()
	defer r.db.group.mu.Unlock()
	return len(r.db.group.waiting)
}
