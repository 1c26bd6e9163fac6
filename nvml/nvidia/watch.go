//go:build linux && cgo

package nvidia

import (
	"encoding/binary"
	"time"

	nv "github.com/NVIDIA/go-nvml/pkg/nvml"

	"haggle/nvml"
)

const (
	waitMillis  = 1000                   // of one wait for an event
	waitAgain   = time.Second            // after a wait that failed
	adviceGrace = 500 * time.Millisecond // for the driver's opinion of what to do about an Xid
)

// watch waits for the Xids of all cards.
type watch struct {
	child  *child
	set    nv.EventSet // nil where the library has no events
	advice chan struct{}
}

func (c *child) newWatch() *watch {
	p := &probe{lib: c.lib}
	set, _ := ask(p, "EventSetCreate", c.lib.api.EventSetCreate).Get()
	return &watch{child: c, set: set, advice: make(chan struct{}, 1)}
}

// register begins to watch a card, if it has events. A card without them is still sampled.
func (w *watch) register(k *card) {
	if w.set == nil {
		return
	}
	p := &probe{lib: w.child.lib}
	types, ok := ask(p, "GetSupportedEventTypes", k.dev.GetSupportedEventTypes).Get()
	if !ok || types&nv.EventTypeXidCriticalError == 0 {
		return
	}
	ask(p, "RegisterEvents", func() (struct{}, nv.Return) {
		return done(k.dev.RegisterEvents(nv.EventTypeXidCriticalError, w.set))
	})
}

// run tells the parent of every Xid, for as long as the process lives.
func (w *watch) run() {
	if w.set == nil {
		return
	}
	p := &probe{lib: w.child.lib}
	for {
		timedOut := false
		got := ask(p, "Wait", func() (nv.EventData, nv.Return) {
			data, ret := w.set.Wait(waitMillis)
			timedOut = ret == nv.ERROR_TIMEOUT
			return data, ret
		})
		data, ok := got.Get()
		switch {
		case ok && data.EventType == nv.EventTypeXidCriticalError:
			w.report(data)
		case got.State == nvml.NoSymbol:
			return
		case !ok && !timedOut:
			// A lost card makes every wait fail at once.
			time.Sleep(waitAgain)
		}
	}
}

func (w *watch) report(data nv.EventData) {
	w.child.mu.Lock()
	var hit *card
	for _, k := range w.child.cards {
		if k.dev == data.Device {
			hit = k
		}
	}
	w.child.mu.Unlock()
	if hit == nil || data.EventData > 1<<30 {
		return
	}
	w.child.tell(nvml.HealthEvent{
		UUID: hit.uuid, Kind: nvml.EventXid, Code: int(data.EventData), NeedsReset: w.needsReset(hit.dev),
	})
}

// needsReset asks the driver for its opinion. A card in trouble may hang, so that nobody waits for it long.
func (w *watch) needsReset(dev nv.Device) nvml.Opt[bool] {
	select {
	case w.advice <- struct{}{}:
	default: // the last one that was asked hangs
		return nvml.None[bool](nvml.Failed)
	}
	answer := make(chan nvml.Opt[bool], 1)
	go func() {
		answer <- recovery(&probe{lib: w.child.lib}, dev)
		<-w.advice
	}()
	timer := time.NewTimer(adviceGrace)
	defer timer.Stop()
	select {
	case o := <-answer:
		return o
	case <-timer.C:
		return nvml.None[bool](nvml.Failed)
	}
}

func recovery(p *probe, dev nv.Device) nvml.Opt[bool] {
	field := []nv.FieldValue{{FieldId: nv.FI_DEV_GET_GPU_RECOVERY_ACTION}}
	action := ask(p, "GetFieldValues", func() (uint32, nv.Return) {
		ret := dev.GetFieldValues(field)
		if ret == nv.SUCCESS {
			ret = nv.Return(field[0].NvmlReturn)
		}
		return binary.NativeEndian.Uint32(field[0].Value[:4]), ret
	})
	return as(action, func(a uint32) (bool, bool) { return nv.DeviceGpuRecoveryAction(a) != nv.GPU_RECOVERY_ACTION_NONE, true })
}
