package runtime_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/runtime"
)

func TestTheJobsEnvironmentWinsExceptWhereTheEngineSpeaks(t *testing.T) {
	spec := runtime.Spec{
		Env:     []string{"A=job", "NVIDIA_VISIBLE_DEVICES=all", "HAGGLE_CARDS=forged", "LD_LIBRARY_PATH=/mine"},
		Devices: []runtime.DeviceID{{Class: runtime.SimulatedGPU, UUID: "SIM-1"}, {Class: runtime.SimulatedGPU, UUID: "SIM-2"}},
	}
	image := []string{"A=image", "B=image", "LD_PRELOAD=/evil.so", "NVIDIA_DRIVER_CAPABILITIES=all", "broken", "PATH=/bin"}
	want := []string{
		"PATH=/bin", "A=job", "B=image", "NVIDIA_VISIBLE_DEVICES=void", "HAGGLE_CARDS=SIM-1,SIM-2", "LD_LIBRARY_PATH=/mine",
	}
	if diff := cmp.Diff(want, runtime.JobEnv(spec, image)); diff != "" {
		t.Error(diff)
	}
	if got := runtime.JobEnv(runtime.Spec{}, nil); len(got) != 2 {
		t.Errorf("an empty job gets %q", got)
	}
}
