package view

// Port is a port on which a job listens. A forward may name it.
type Port struct {
	Name string `json:"name,omitempty"`
	Port uint16 `json:"port"`
}

// Collect is a file or folder of a job that the agent brings home when the job has ended.
type Collect struct {
	Remote string `json:"remote" doc:"relative to /work, or absolute in the job"`
	Local  string `json:"local" doc:"absolute path of a local folder, which is made"`
}

// Secret is a value that the job finds as a file in memory, below /run/secrets. Nobody stores it.
type Secret struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

// Checkpoint says how a job's checkpoints are kept.
type Checkpoint struct {
	Dir     string   `json:"dir,omitempty" doc:"folder of the job; /work/ckpt by default"`
	EveryMs int64    `json:"every_ms,omitempty" doc:"10 minutes by default"`
	To      []string `json:"to,omitempty" doc:"renter (the default), a presigned https URL with {seq} in it, or lease:ID for another lease's disk"`
}

// Progress is how far a transfer is.
type Progress struct {
	What      string `json:"what,omitempty" doc:"image, files or checkpoint; empty for a copy"`
	Files     int64  `json:"files"`
	FilesDone int64  `json:"files_done"`
	Bytes     int64  `json:"bytes"`
	BytesDone int64  `json:"bytes_done"`
	Sent      int64  `json:"sent_bytes" doc:"bytes that travelled; what the other side has already does not"`
	Current   string `json:"current,omitempty"`
	Scanning  bool   `json:"scanning,omitempty" doc:"the totals are still being counted"`
}

// Collected is what became of a Collect.
type Collected struct {
	Remote string `json:"remote"`
	Local  string `json:"local"`
	Done   bool   `json:"done" doc:"nothing more is tried"`
	Error  string `json:"error,omitempty" doc:"why it is not here, or not yet"`
	Files  int64  `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// CheckpointInfo is one checkpoint that is kept.
type CheckpointInfo struct {
	Seq   int64  `json:"seq"`
	AtMs  int64  `json:"at_ms" doc:"Unix milliseconds"`
	Bytes int64  `json:"bytes" doc:"as it is kept, encrypted"`
	Where string `json:"where" doc:"renter, url, or lease:ID; joined with commas"`
}

// CopyRequest copies files between this machine and a job. The rules are those of scp and rsync: a source folder is copied into
// the target, and with a / at its end its contents are.
type CopyRequest struct {
	Push   bool   `json:"push" doc:"to the job; otherwise from it"`
	From   string `json:"from" doc:"a local path is absolute, one in the job is absolute or relative to /work"`
	To     string `json:"to"`
	Delete bool   `json:"delete,omitempty" doc:"what the source has not is deleted at the target"`
	Ignore bool   `json:"ignore,omitempty" doc:"leaves out what .gitignore and .haggleignore name"`
}

// CopyReport says what a copy did.
type CopyReport struct {
	Files   int64  `json:"files"`
	Bytes   int64  `json:"bytes"`
	Sent    int64  `json:"sent_bytes"`
	Same    int64  `json:"same" doc:"files that were there already"`
	Skipped int64  `json:"skipped,omitempty" doc:"what a copy leaves out: devices, sockets, links that lead out of the folder"`
	Digest  string `json:"digest" doc:"of names, modes and contents"`
}

// ExtendRequest adds to what a lease may use.
type ExtendRequest struct {
	DurationMs  int64 `json:"duration_ms,omitempty" doc:"running time to add"`
	BudgetMicro int64 `json:"budget_micro,omitempty" doc:"to add, in millionths; by default what the added time costs"`
}

// NameRequest names a lease.
type NameRequest struct {
	Name   string   `json:"name" doc:"[a-z0-9][a-z0-9-]{0,31}; empty takes the name away"`
	Labels []string `json:"labels,omitempty" doc:"replace those that it has"`
}
