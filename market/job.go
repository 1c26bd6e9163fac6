package market

import (
	"path"
	"regexp"
	"strings"
)

// Bounds of a job.
const (
	maxArgs   = 256
	maxEnv    = 128
	maxJobArg = 16 << 10 // bytes of all arguments, and of all variables, together
	maxDir    = 1024     // bytes of a working directory

	// MaxArchive is the largest image that a renter may bring, in bytes.
	MaxArchive = int64(64 << 30)
)

// Job is what runs in a lease. It travels unsigned beside the bid; the bid holds its salted hash, so that the public
// terms say nothing about it and neither side can change it afterwards.
type Job struct {
	Salt    Nonce    `cbor:"1,keyasint"`
	Image   string   `cbor:"2,keyasint"` // digest, sha256:…
	Args    []string `cbor:"3,keyasint"` // after the image's entry point; empty runs the image's own command
	EnvHash Hash     `cbor:"4,keyasint"` // Env.Hash under the same salt
	// Archive is the size in bytes of the OCI archive that the renter sends for the image; 0: the rig has the image.
	Archive int64 `cbor:"5,keyasint,omitempty"`
	// Workdir is the folder in which the job starts, absolute and clean; "" is the image's own.
	Workdir string `cbor:"6,keyasint,omitempty"`
	// Secrets is how many secrets come with the renter's signature. Their names and values are not part of the job.
	Secrets uint8 `cbor:"7,keyasint,omitempty"`
}

// Env is a job's environment, KEY=VALUE each. It is sent only after both signatures.
type Env []string

// digestForm and envForm are compiled once and never written to again.
var (
	digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	envForm    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}=`)
)

// Hash returns the hash that a bid commits to.
func (j Job) Hash() Hash { return HashOf(encode(j)) }

// Hash returns the environment's salted hash.
func (e Env) Hash(salt Nonce) Hash {
	return HashOf(encode(struct {
		Salt Nonce    `cbor:"1,keyasint"`
		Env  []string `cbor:"2,keyasint"`
	}{salt, e}))
}

// Validate checks a job's bounds.
func (j Job) Validate() error {
	bad := func(why string) error { return NewError(CodeBadRecord, "kind", "job", "why", why) }
	switch {
	case !digestForm.MatchString(j.Image):
		return bad("its image is not a sha256 digest")
	case len(j.Args) > maxArgs || total(j.Args) > maxJobArg:
		return bad("its arguments are too long")
	case strings.ContainsRune(strings.Join(j.Args, ""), 0):
		return bad("an argument holds a zero byte")
	case j.Archive < 0 || j.Archive > MaxArchive:
		return bad("its image is larger than 64 GiB")
	case j.Secrets > MaxSecrets:
		return bad("it has too many secrets")
	case j.Workdir != "" && (len(j.Workdir) > maxDir || j.Workdir[0] != '/' || path.Clean(j.Workdir) != j.Workdir || strings.ContainsRune(j.Workdir, 0)):
		return bad("its working directory is not an absolute path")
	}
	return nil
}

// Validate checks an environment's form and bounds.
func (e Env) Validate() error {
	if len(e) > maxEnv || total(e) > maxJobArg {
		return NewError(CodeBadRecord, "kind", "job", "why", "its environment is too long")
	}
	for _, v := range e {
		if !envForm.MatchString(v) || strings.ContainsRune(v, 0) {
			return NewError(CodeBadRecord, "kind", "job", "why", "its environment is not made of NAME=VALUE")
		}
	}
	return nil
}

func total(list []string) (bytes int) {
	for _, s := range list {
		bytes += len(s)
	}
	return bytes
}
