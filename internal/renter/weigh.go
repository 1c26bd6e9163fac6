package renter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"haggle/internal/filesync"
	"haggle/market"
)

// weigh finds out what an order has to send before the start: its size goes into the bid.
func (a *Agent) weigh(ctx context.Context, o *order) error {
	a.amending.Lock()
	err := a.nameFree(ctx, o.inside.Name, market.Hash{})
	a.amending.Unlock()
	if err != nil {
		return err
	}
	if err := a.checkTargets(ctx, o.inside.Checkpoint); err != nil {
		return err
	}
	if file := o.inside.ImageFile; file != "" {
		if a.cfg.InspectImage == nil {
			return market.NewError(market.CodeUnsupported, "what", "an image of one's own", "instead", "name an image of the rig")
		}
		if o.digest, o.archive, err = a.cfg.InspectImage(file); err != nil {
			return localFault(file, err)
		}
		o.upload += o.archive
	}
	if src := o.inside.Src; src != "" {
		_, size, err := filesync.Size(ctx, contents(src), o.inside.Ignore)
		if err != nil {
			return fileFault(ctx, err)
		}
		o.upload += size
	}
	if o.resume != "" {
		size, err := a.weighCheckpoint(ctx, o)
		if err != nil {
			return err
		}
		o.upload += size
	}
	if o.inside.wants() {
		o.upload++ // an empty folder is an upload, too
	}
	return nil
}

// weighCheckpoint finds the checkpoint that an order begins from. The job is told that it begins in the middle.
func (a *Agent) weighCheckpoint(ctx context.Context, o *order) (int64, error) {
	r, err := a.find(ctx, o.resume)
	if err != nil {
		return 0, err
	}
	r, _ = a.latest(r)
	k, size, err := a.newestOf(ctx, r)
	if err != nil {
		return 0, err
	}
	before := r.State.Attempt + 1
	if r.Inside.Resumed != nil {
		before += r.Inside.Resumed.Attempts
	}
	o.inside.Resumed = &Restoration{Lease: r.Lease, Seq: k.Seq, Dir: r.Inside.plan().Dir, Attempts: before}
	if c := o.inside.Checkpoint; c != nil {
		o.inside.Resumed.Dir = c.Dir
	}
	for _, v := range []string{"HAGGLE_RESUME=1", fmt.Sprintf("HAGGLE_ATTEMPT=%d", before+1)} {
		name, _, _ := strings.Cut(v, "=")
		o.env = slices.DeleteFunc(slices.Clone(o.env), func(e string) bool { return strings.HasPrefix(e, name+"=") })
		o.env = append(o.env, v)
	}
	return size, nil
}

// checkTargets reports whether the leases exist on whose disks checkpoints shall be kept.
func (a *Agent) checkTargets(ctx context.Context, c *Checkpoint) error {
	if c == nil {
		return nil
	}
	for _, to := range c.To {
		if id, ok := strings.CutPrefix(to, toLease); ok {
			if _, err := a.find(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}
