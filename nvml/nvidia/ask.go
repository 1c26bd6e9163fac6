package nvidia

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"haggle/nvml"
)

// askCard asks about one card and turns what is no answer into the errors of nvml.Driver.
func (d *Driver) askCard(ctx context.Context, q request) (reply, error) {
	uuid := q.UUID
	r, err := d.ask(ctx, q)
	if err == nil && (r.Card != nil && r.Card.UUID != uuid || r.Sample != nil && r.Sample.UUID != uuid) {
		err = errors.New("the child process answered for another card")
	}
	if err != nil {
		return reply{}, fmt.Errorf("card %.96q: %w", uuid, err)
	}
	return r, nil
}

// mayAsk returns the error of a question about a card that needs no asking.
func (d *Driver) mayAsk(uuid string) error {
	if uuid == "" || uuid != printable(uuid, maxUUID) {
		return nvml.ErrNoCard
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.patients[uuid]; p != nil && p.misses >= hangs && time.Now().Before(p.until) {
		return fmt.Errorf("it hangs: %w", nvml.ErrTimeout)
	}
	return nil
}

// ask asks the child, and once more when it dies meanwhile.
func (d *Driver) ask(ctx context.Context, r request) (reply, error) {
	var dead *link
	for {
		l, err := d.await(ctx, dead)
		if err == nil && r.Op != opList {
			err = d.mayAsk(r.UUID)
		}
		if err != nil {
			return reply{}, err
		}
		asked := time.Now()
		a, err := l.ask(ctx, r, d.cfg.Timeout)
		switch {
		case err == nil:
			return a, d.refused(l, r.UUID, asked, a)
		case errors.Is(err, errGone) && dead == nil:
			dead = l
		case errors.Is(err, errGone) || errors.Is(err, errLate):
			if d.life.Err() != nil {
				return reply{}, nvml.ErrClosed
			}
			return reply{}, fmt.Errorf("%w: %w", nvml.ErrTimeout, err)
		default:
			return reply{}, ended(err)
		}
	}
}

// refused returns the error of an answer that is none.
func (d *Driver) refused(l *link, uuid string, asked time.Time, r reply) error {
	switch r.Code {
	case "":
		return nil
	case codeLost:
		d.lose(uuid)
		return nvml.ErrLost
	case codeNoCard:
		d.mu.Lock()
		known := d.patients[uuid] != nil
		d.mu.Unlock()
		if !known {
			return nvml.ErrNoCard
		}
		d.lose(uuid)
		return nvml.ErrLost
	case codeHung:
		d.mu.Lock()
		known := d.patients[uuid] != nil
		d.mu.Unlock()
		if !known {
			return nvml.ErrNoCard // whatever it is that hangs, nobody has seen a card of this name
		}
		d.late(l, uuid, asked)
		return fmt.Errorf("it has not answered earlier questions: %w", nvml.ErrTimeout)
	default:
		return refusedWith(r.Code, r.Text)
	}
}

// refusedWith turns a code that needs no memory of the card into an error.
func refusedWith(code, text string) error {
	text = printable(text, maxText)
	switch code {
	case codeNoDriver:
		return fmt.Errorf("%s: %w", text, nvml.ErrNoDriver)
	case codeNoCard:
		return nvml.ErrNoCard
	case codeUnsupported:
		return fmt.Errorf("%s: %w", text, nvml.ErrUnsupported)
	case codePermission:
		return fmt.Errorf("%s: %w", text, fs.ErrPermission)
	default:
		return errors.New(text)
	}
}

// await returns the child that answers, if it is another than the dead one. It waits for one that is being started, but no
// longer than a card may take.
func (d *Driver) await(ctx context.Context, dead *link) (*link, error) {
	timer := time.NewTimer(d.cfg.Timeout)
	defer timer.Stop()
	for {
		if err := ctx.Err(); err != nil {
			return nil, ended(err)
		}
		d.mu.Lock()
		l, down, changed, closed := d.link, d.down, d.changed, d.closed
		d.mu.Unlock()
		switch {
		case closed:
			return nil, nvml.ErrClosed
		case l != nil && l != dead:
			return l, nil
		case down != nil:
			return nil, down
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-timer.C:
			return nil, fmt.Errorf("the driver's library is still starting: %w", nvml.ErrTimeout)
		}
	}
}

// ended is the error of a call whose context ended.
func ended(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", nvml.ErrTimeout, err)
	}
	return err
}
