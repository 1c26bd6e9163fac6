package nvidia

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"haggle/nvml"
)

// scrubSpeed is how fast a card's memory can be overwritten at least, in bytes per second.
const scrubSpeed = 50_000_000_000

// scrubOrder tells a child how to scrub.
type scrubOrder struct {
	Version int    `json:"version"`
	Library string `json:"library"`
	// Most is the card's memory in bytes.
	Most int64 `json:"most"`
}

// Scrub implements nvml.Scrubber, for cards and for MIG slices by their UUID. A child of its own loads CUDA, takes all memory
// of the card that it can get in ever smaller pieces, overwrites it with zeros, reads samples back and gives it free. What it
// cannot reach is what another process holds, what the driver keeps for itself, and the few hundred MiB of CUDA's own context.
// It takes the time of the card's memory at 50 GB/s and Config.ScrubGrace at most. Of two scrubs of one card the second waits.
//
// It returns nvml.ErrUnsupported where CUDA is not installed or too old, and for a whole card in MIG mode, whose slices are
// scrubbed one by one; nvml.ErrTimeout, nvml.ErrNoCard and nvml.ErrLost as the driver's readings do.
func (d *Driver) Scrub(ctx context.Context, uuid string) (int64, error) {
	bytes, err := d.scrub(ctx, uuid)
	if err != nil {
		return 0, fmt.Errorf("scrub: card %.96q: %w", uuid, err)
	}
	return bytes, nil
}

func (d *Driver) scrub(ctx context.Context, uuid string) (int64, error) {
	most, err := d.scrubbable(ctx, uuid)
	if err != nil {
		return 0, err
	}
	limit := d.cfg.ScrubGrace + time.Duration(float64(most)/scrubSpeed*float64(time.Second))
	order := request{Op: opScrub, UUID: uuid, Scrub: &scrubOrder{Version: protocolVersion, Library: d.cfg.CUDA, Most: most}}
	a, err := d.shot(ctx, opScrub+" "+uuid, order, cudaEnv(os.Environ(), uuid), limit)
	if err == nil && (a.Bytes == 0 || a.Bytes > most) {
		err = fmt.Errorf("the child process says %d of %d bytes", a.Bytes, most)
	}
	if err == nil {
		return a.Bytes, nil
	}
	if !isSlice(uuid) && ctx.Err() == nil {
		if _, gone := d.Sample(ctx, uuid); errors.Is(gone, nvml.ErrLost) {
			return 0, fmt.Errorf("%w: %w", nvml.ErrLost, err)
		}
	}
	return 0, err
}

// scrubbable returns how much memory a card, or a slice of one, has at most.
func (d *Driver) scrubbable(ctx context.Context, uuid string) (int64, error) {
	if !isSlice(uuid) {
		r, err := d.askCard(ctx, request{Op: opCard, UUID: uuid})
		if err != nil {
			return 0, err
		}
		if r.Card == nil {
			return 0, errors.New("the child process answered without a card")
		}
		if on, _ := r.Card.MIG.Get(); on {
			return 0, fmt.Errorf("it is divided into slices, which are scrubbed one by one: %w", nvml.ErrUnsupported)
		}
		return r.Card.MemoryBytes, nil
	}
	cards, err := d.Cards(ctx)
	if err != nil {
		return 0, err
	}
	most := int64(0)
	for _, c := range cards {
		if on, _ := c.MIG.Get(); on {
			most = max(most, c.MemoryBytes)
		}
	}
	if most == 0 || !isDevice(uuid) {
		return 0, nvml.ErrNoCard
	}
	return most, nil
}

// cudaEnv is an environment in which CUDA sees one card alone: then no other card can hold it up, and no variable of the
// parent's makes it load or write anything.
func cudaEnv(env []string, uuid string) []string {
	var out []string
	for _, v := range env {
		if !strings.HasPrefix(v, "CUDA_") {
			out = append(out, v)
		}
	}
	return append(out, "CUDA_VISIBLE_DEVICES="+uuid, "CUDA_CACHE_DISABLE=1", "CUDA_MODULE_LOADING=LAZY")
}
