//go:build linux

package containerd

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/containerd/containerd/v2/core/containers"

	"haggle/runtime"
)

// Labels of a container. Those of the job's Spec follow the prefix labelSpecs.
const (
	labelSpec    = "haggle.spec"    // runtime.Spec.Hash
	labelStarted = "haggle.started" // time of the order to start
	labelNetwork = "haggle.network" // runtime.Network, of a job that has one
	labelFinal   = "haggle.final"   // finalState
	labelDevices = "haggle.devices" // the devices that it holds until it has ended
	labelIDs     = "haggle.ids"     // the first id of the job's range on the host
	labelJob     = "haggle.job"     // whose a container is that was a spare; without it, it still is one
	labelImage   = "haggle.image"   // the digest of the job's image
	labelFrom    = "haggle.from"    // the container whose disk the job has taken over
	labelHeir    = "haggle.heir"    // heir: whose the disk of an ended job becomes
	labelVisit   = "haggle.visit"   // the container whose disk a visit shows
	// labelConfig is the digest of the config of the job's image. By this name of it containerd's garbage collector keeps what it
	// names: a job that takes the disk over needs the config, when the image itself is gone.
	labelConfig = "containerd.io/gc.ref.content.haggle.config"
	labelSpecs  = "haggle.label/"
)

// jobLabels are those of a job that is made.
func jobLabels(spec runtime.Spec, firstID uint32) (map[string]string, error) {
	all := map[string]string{
		labelSpec: spec.Hash(), labelIDs: strconv.FormatUint(uint64(firstID), 10), labelImage: spec.Image,
	}
	for k, v := range spec.Labels {
		all[labelSpecs+k] = v
	}
	for label, value := range map[string]any{labelDevices: spec.Devices, labelNetwork: spec.Network} {
		if (label == labelDevices && !realDevices(spec)) || (label == labelNetwork && spec.Network.Mode == runtime.NetworkNone) {
			continue
		}
		b, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		all[label] = string(b)
	}
	return all, nil
}

// firstID is the first id of a job's range; false when it has none.
func firstID(c containers.Container) (uint32, bool) {
	n, err := strconv.ParseUint(c.Labels[labelIDs], 10, 32)
	return uint32(n), err == nil && n > 0
}

// readLabel decodes a label that may not be there.
func readLabel(c containers.Container, label string, into any) error {
	s, ok := c.Labels[label]
	if !ok {
		return nil
	}
	if err := json.Unmarshal([]byte(s), into); err != nil {
		return fmt.Errorf("label %s of job %s: %w", label, c.ID, err)
	}
	return nil
}
