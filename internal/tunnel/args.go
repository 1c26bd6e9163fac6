package tunnel

// DialArgs are the arguments of KindDial: a TCP port to connect to from inside the job.
type DialArgs struct {
	Port uint16 `json:"port"`
	Host string `json:"host,omitempty"` // empty: 127.0.0.1, then ::1
}

// FilesArgs are the arguments of KindFiles.
type FilesArgs struct {
	Base string `json:"base,omitempty"` // the folder that relative paths start from; empty: /work
}

// CheckpointArgs are the arguments of KindCheckpoint: one checkpoint, packed and encrypted inside the job.
type CheckpointArgs struct {
	Dir        string   `json:"dir,omitempty"`        // the folder that holds the state; empty: /work/ckpt
	Recipients []string `json:"recipients,omitempty"` // age X25519 recipients
	Known      string   `json:"known,omitempty"`      // digest of the state that the asker has; no bytes follow for the same
}

// PingSize is the size of a nonce of KindPing in bytes.
const PingSize = 16
