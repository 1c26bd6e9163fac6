package runtime

import (
	"slices"
	"strings"
)

const (
	defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	// noCards keeps a vendor's wrapper on the rig from adding cards by itself.
	noCards = "NVIDIA_VISIBLE_DEVICES=void"
)

// JobEnv puts a job's environment together: the image's variables, then the spec's, then what the engine itself
// states; the last word on a key counts. The image's LD_… and NVIDIA_… are dropped, because they could reach
// programs that run for the job outside it.
func JobEnv(spec Spec, image []string) []string {
	var env []string
	set := func(v string) {
		key, _, ok := strings.Cut(v, "=")
		if !ok || key == "" || strings.IndexByte(v, 0) >= 0 {
			return
		}
		i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, key+"=") })
		if i < 0 {
			env = append(env, v)
			return
		}
		env[i] = v
	}
	set(defaultPath)
	for _, v := range image {
		if !strings.HasPrefix(v, "LD_") && !strings.HasPrefix(v, "NVIDIA_") {
			set(v)
		}
	}
	for _, v := range spec.Env {
		set(v)
	}
	set(noCards)
	var cards []string
	for _, d := range spec.Devices {
		if d.Class == SimulatedGPU {
			cards = append(cards, d.UUID)
		}
	}
	if len(cards) > 0 {
		set(CardsEnv + "=" + strings.Join(cards, ","))
	}
	return env
}
