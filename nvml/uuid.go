package nvml

import (
	"crypto/sha256"
	"encoding/binary"
)

// SaltedHash is the form in which a card's UUID leaves the rig: the same card keeps one hash per salt, and nobody
// learns the UUID or recognises the card elsewhere without the salt. It is SHA-256 over "haggle/card", a zero byte, the
// salt's length in bytes as eight big-endian bytes, the salt and the UUID.
func SaltedHash(salt []byte, uuid string) [32]byte {
	b := append(make([]byte, 0, 20+len(salt)+len(uuid)), "haggle/card\x00"...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(salt)))
	b = append(b, salt...)
	return sha256.Sum256(append(b, uuid...))
}
