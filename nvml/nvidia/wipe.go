//go:build linux && cgo

package nvidia

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
)

const (
	largestPiece  = int64(1) << 32 // of memory taken at once
	smallestPiece = int64(2) << 20 // what CUDA takes memory in
	maxPieces     = 1 << 16
	sampleBytes   = 4096 // read back at each of the places
	samplePlaces  = 4
)

// piece is memory of the card that is held.
type piece struct {
	at    uint64
	bytes int64
}

// scrub overwrites the memory of a card and returns how many bytes that were.
func scrub(o scrubOrder, uuid string) (int64, error) {
	c, err := loadCUDA(o.Library)
	if err != nil {
		return 0, err
	}
	runtime.LockOSThread() // CUDA's context belongs to the thread
	defer runtime.UnlockOSThread()
	dev, err := c.find(uuid)
	if err != nil {
		return 0, err
	}
	var ctx uintptr
	if err := cudaError("open the card", c.retain(&ctx, dev)); err != nil {
		return 0, err
	}
	defer c.release(dev)
	if err := cudaError("enter the card", c.enter(ctx)); err != nil {
		return 0, err
	}
	var free, total uintptr
	if err := cudaError("ask for free memory", c.memory(&free, &total)); err != nil {
		return 0, err
	}
	held, err := c.hold(min(int64(free), o.Most))
	defer c.drop(held)
	if err != nil {
		return 0, err
	}
	return c.overwrite(held)
}

// hold takes the card's memory in pieces, from large to small, until none is left or it is as much as was free.
func (c *cuda) hold(free int64) ([]piece, error) {
	var held []piece
	size := largestPiece
	for left := free; left >= smallestPiece && len(held) < maxPieces; {
		for size > left {
			size /= 2
		}
		p := piece{bytes: size}
		result := c.alloc(&p.at, uintptr(size))
		if result == cudaNoMemory {
			if size /= 2; size < smallestPiece {
				break
			}
			continue
		}
		if err := cudaError("take memory", result); err != nil {
			return held, err
		}
		held = append(held, p)
		left -= size
	}
	if len(held) == 0 {
		return nil, errors.New("no memory of the card is free; a process holds it")
	}
	return held, nil
}

// overwrite zeroes what is held, and looks whether it is zero.
func (c *cuda) overwrite(held []piece) (int64, error) {
	total := int64(0)
	for _, p := range held {
		if err := cudaError("overwrite memory", c.fill(p.at, 0, uintptr(p.bytes/4))); err != nil {
			return 0, err
		}
		total += p.bytes
	}
	if err := cudaError("overwrite memory", c.finish()); err != nil {
		return 0, err
	}
	buffer := make([]byte, sampleBytes)
	for _, p := range held {
		places := []int64{0, p.bytes - sampleBytes}
		for range samplePlaces - len(places) {
			places = append(places, rand.Int64N(p.bytes-sampleBytes))
		}
		for _, at := range places {
			buffer[0] = 1 // what comes back must come from the card
			if err := cudaError("read memory back", c.read(&buffer[0], p.at+uint64(at), sampleBytes)); err != nil {
				return 0, err
			}
			if !zero(buffer) {
				return 0, fmt.Errorf("memory that was overwritten is not zero at byte %d of a piece of %d", at, p.bytes)
			}
		}
	}
	return total, nil
}

func zero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// drop gives the memory free. What does not work ends with the process.
func (c *cuda) drop(held []piece) {
	for _, p := range held {
		c.free(p.at)
	}
}
