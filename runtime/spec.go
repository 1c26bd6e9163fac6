package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// SimulatedGPU is the device class of cards that do not exist. Such a device only names itself to the job.
const SimulatedGPU = "haggle.sim/gpu"

// CardsEnv is the environment variable in which a job finds the ids of its simulated cards, comma separated.
const CardsEnv = "HAGGLE_CARDS"

// Bounds and defaults of a Spec.
const (
	MaxIDLength    = 64
	MaxLabels      = 32
	MaxLabelBytes  = 1024      // one value
	MaxArgs        = 1024      // count, also of Env
	MaxArgBytes    = 128 << 10 // one value: what Linux takes
	MaxCommandSize = 1 << 20   // all of Args and Env
	MaxDevices     = 64

	DefaultCPUMillis   = 1000
	DefaultMemoryBytes = 1 << 30
	DefaultPids        = 4096
	DefaultShmBytes    = 1 << 30 // or half of the memory, if that is less
	DefaultLogLimit    = 64 << 20
	DefaultDiskBytes   = 10 << 30

	MaxSecrets     = 32       // count
	MaxSecretBytes = 64 << 10 // one value

	minMemoryBytes = 6 << 20  // below it no container starts at all
	minDiskBytes   = 16 << 20 // below it no file system fits
	maxLimit       = 1 << 50
)

// DeviceID names one device: Class is vendor and kind as CDI writes them ("nvidia.com/gpu"), UUID the device's own id.
type DeviceID struct {
	Class, UUID string
}

// Spec is one job. A zero limit means its default: no job is without limits.
type Spec struct {
	// ID is unique for ever, per attempt: [a-z0-9-]{1,64}.
	ID string
	// Labels come back in Status. Keys are [a-z0-9._/-]{1,64}.
	Labels map[string]string
	// Image is the digest of an image that the engine holds: sha256:…
	Image string
	// Args are appended to the image's entrypoint in place of the image's own command; empty keeps that.
	Args []string
	// Env holds KEY=VALUE and wins over the image's, except for what the engine itself sets.
	Env []string
	// Workdir is absolute; empty means the image's.
	Workdir     string
	Devices     []DeviceID
	CPUMillis   int64 // thousandths of a processor
	MemoryBytes int64 // of the whole job, /dev/shm included; no swap
	Pids        int64 // processes and threads
	ShmBytes    int64 // size of /dev/shm
	// LogLimitBytes is where the log is cut; the job goes on.
	LogLimitBytes int64
	// DiskBytes bounds all that the job keeps on disk: what it changes in its root file system, and WorkDir.
	DiskBytes int64
	// From is the id of a stopped job whose disk this one takes over, as it is; that job keeps its status and its log, and has
	// no disk any more.
	From string `json:",omitempty"`
	// Network is what the job reaches; the zero value is nothing but itself.
	Network Network
	// Secrets are files below SecretsDir, by name ([A-Za-z0-9._-]{1,64}). They are kept in memory for as long as the job is
	// there, and never in a label, a log or on disk. Hash and JSON leave them out.
	Secrets map[string][]byte `json:"-"`
}

// Places inside a job.
const (
	// WorkDir is a folder on the job's own disk that every job has.
	WorkDir = "/work"
	// SecretsDir holds a job's secrets.
	SecretsDir = "/run/secrets"
)

// NetworkMode is what a job reaches.
type NetworkMode string

// Modes of a job's network.
const (
	// NetworkNone is a loopback interface of the job's own.
	NetworkNone NetworkMode = ""
	// NetworkInternet is what is beyond the rig's house, and nothing inside it.
	NetworkInternet NetworkMode = "internet"
)

// Network is a job's part of the rig's line.
type Network struct {
	Mode NetworkMode `json:",omitempty"`
	// UpBits and DownBits are the most bits a second out of the job and into it. 0 is the engine's own bound.
	UpBits   int64 `json:",omitempty"`
	DownBits int64 `json:",omitempty"`
}

// WithDefaults returns the spec with every zero limit replaced by its default.
func (s Spec) WithDefaults() Spec {
	setDefault(&s.CPUMillis, DefaultCPUMillis)
	setDefault(&s.MemoryBytes, DefaultMemoryBytes)
	setDefault(&s.Pids, DefaultPids)
	setDefault(&s.ShmBytes, min(DefaultShmBytes, s.MemoryBytes/2))
	setDefault(&s.LogLimitBytes, DefaultLogLimit)
	setDefault(&s.DiskBytes, DefaultDiskBytes)
	return s
}

func setDefault(v *int64, def int64) {
	if *v == 0 {
		*v = def
	}
}

// Validate returns an ErrInvalidSpec that names the first fault, or nil.
func (s Spec) Validate() error {
	if err := ValidateID(s.ID); err != nil {
		return err
	}
	if s.From != "" && (ValidateID(s.From) != nil || s.From == s.ID) {
		return invalid("job %.80q cannot have the disk of %.80q", s.ID, s.From)
	}
	if !ValidDigest(s.Image) {
		return invalid("image %.80q is no sha256 digest", s.Image)
	}
	if err := validateLabels(s.Labels); err != nil {
		return err
	}
	if err := validateCommand(s.Args, s.Env); err != nil {
		return err
	}
	if w := s.Workdir; w != "" && (len(w) > 4096 || !path.IsAbs(w) || path.Clean(w) != w || !cleanText(w)) {
		return invalid("working directory %.80q is no clean absolute path", w)
	}
	if err := validateDevices(s.Devices); err != nil {
		return err
	}
	if m := s.Network.Mode; m != NetworkNone && m != NetworkInternet {
		return invalid("network %.80q is unknown", string(m))
	}
	if err := validateSecrets(s.Secrets); err != nil {
		return err
	}
	for _, l := range []struct {
		name   string
		v, min int64
	}{
		{"processor limit", s.CPUMillis, 10},
		{"memory limit", s.MemoryBytes, minMemoryBytes},
		{"process limit", s.Pids, 1},
		{"size of /dev/shm", s.ShmBytes, 1024},
		{"log limit", s.LogLimitBytes, 1024},
		{"disk limit", s.DiskBytes, minDiskBytes},
		{"upload limit", s.Network.UpBits, 8000},
		{"download limit", s.Network.DownBits, 8000},
	} {
		if l.v != 0 && (l.v < l.min || l.v > maxLimit) {
			return invalid("%s %d is not in %d..%d", l.name, l.v, l.min, int64(maxLimit))
		}
	}
	return nil
}

// Hash tells two specs apart. Limits count with their defaults filled in.
func (s Spec) Hash() string {
	// Maps are written in the order of their keys, so equal specs are equal bytes. Nothing here can fail to encode.
	b, _ := json.Marshal(s.WithDefaults())
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ValidateID returns ErrInvalidSpec unless id is a job id: [a-z0-9-]{1,64}.
func ValidateID(id string) error {
	if len(id) == 0 || len(id) > MaxIDLength || !only(id, "-") {
		return invalid("job id %.80q is not [a-z0-9-]{1,64}", id)
	}
	return nil
}

func validateLabels(labels map[string]string) error {
	if len(labels) > MaxLabels {
		return invalid("%d labels are more than %d", len(labels), MaxLabels)
	}
	for k, v := range labels {
		if len(k) == 0 || len(k) > 64 || !only(k, "._/-") {
			return invalid("label key %.80q is not [a-z0-9._/-]{1,64}", k)
		}
		if len(v) > MaxLabelBytes || !cleanText(v) {
			return invalid("value of label %s is longer than %d bytes or no text", k, MaxLabelBytes)
		}
	}
	return nil
}

func validateCommand(args, env []string) error {
	if len(args) > MaxArgs || len(env) > MaxArgs {
		return invalid("%d arguments and %d variables: each at most %d", len(args), len(env), MaxArgs)
	}
	size := 0
	for i, a := range args {
		if len(a) > MaxArgBytes || strings.IndexByte(a, 0) >= 0 {
			return invalid("argument %d is longer than %d bytes or holds a zero byte", i, MaxArgBytes)
		}
		size += len(a)
	}
	for i, e := range env {
		if len(e) > MaxArgBytes || strings.IndexByte(e, 0) >= 0 || strings.IndexByte(e, '=') < 1 {
			return invalid("variable %d is not KEY=VALUE of at most %d bytes", i, MaxArgBytes)
		}
		size += len(e)
	}
	if size > MaxCommandSize {
		return invalid("arguments and variables take %d bytes, more than %d", size, MaxCommandSize)
	}
	return nil
}

func validateDevices(devices []DeviceID) error {
	if len(devices) > MaxDevices {
		return invalid("%d devices are more than %d", len(devices), MaxDevices)
	}
	seen := make(map[DeviceID]bool, len(devices))
	for _, d := range devices {
		if len(d.Class) == 0 || len(d.Class) > 128 || !only(d.Class, "._/-") {
			return invalid("device class %.80q", d.Class)
		}
		if len(d.UUID) == 0 || len(d.UUID) > 128 || !only(strings.ToLower(d.UUID), "._-") {
			return invalid("device id %.80q", d.UUID)
		}
		if seen[d] {
			return invalid("device %s is named twice", d.UUID)
		}
		seen[d] = true
	}
	return nil
}

func validateSecrets(secrets map[string][]byte) error {
	if len(secrets) > MaxSecrets {
		return invalid("%d secrets are more than %d", len(secrets), MaxSecrets)
	}
	for name, value := range secrets {
		if len(name) == 0 || len(name) > 64 || !only(strings.ToLower(name), "._-") || strings.Trim(name, ".") == "" {
			return invalid("name of a secret %.80q is not [A-Za-z0-9._-]{1,64}", name)
		}
		if len(value) > MaxSecretBytes {
			return invalid("secret %s is longer than %d bytes", name, MaxSecretBytes)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalidSpec, fmt.Sprintf(format, args...))
}

// only reports whether s holds nothing but lower-case letters, digits and the characters of extra.
func only(s, extra string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && strings.IndexByte(extra, c) < 0 {
			return false
		}
	}
	return true
}

// ValidDigest reports whether s is a digest as images have them: sha256:…
func ValidDigest(s string) bool {
	hexa, ok := strings.CutPrefix(s, "sha256:")
	if !ok || len(hexa) != 64 {
		return false
	}
	return strings.Trim(hexa, "0123456789abcdef") == ""
}

func cleanText(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}
