package market

import "regexp"

// Bounds of a job's secrets.
const (
	MaxSecrets     = 32       // of one job
	MaxSecretBytes = 48 << 10 // of all values together: they travel in one message
)

// secretForm is compiled once and never written to again.
var secretForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Secret is a value that the job finds as a file in memory, and that nobody stores.
type Secret struct {
	Name  string `cbor:"1,keyasint"` // of the file: 1 to 64 letters, digits, dots, dashes and underscores
	Value []byte `cbor:"2,keyasint"`
}

// CheckSecrets reports whether secrets are as many as their job says, have names of their own and fit the bounds. No error holds a
// value.
func CheckSecrets(j Job, secrets []Secret) error {
	bad := func(why string) error { return NewError(CodeBadRecord, "kind", "job", "why", why) }
	if len(secrets) > MaxSecrets || len(secrets) != int(j.Secrets) {
		return bad("its secrets are not as many as it says")
	}
	names, bytes := map[string]bool{}, 0
	for _, s := range secrets {
		if !secretForm.MatchString(s.Name) || s.Name == "." || s.Name == ".." || names[s.Name] {
			return bad("a secret's name is not one, or is there twice")
		}
		names[s.Name] = true
		bytes += len(s.Value)
	}
	if bytes > MaxSecretBytes {
		return bad("its secrets are larger than 48 KiB")
	}
	return nil
}
