package view

import "haggle/market"

// PayNone is the Pay of a bid that is owed and settled later.
const PayNone = "none"

// BidRequest orders slots: of one offer, or of the best that a query finds.
type BidRequest struct {
	Query        string   `json:"query,omitempty"`
	Offer        string   `json:"offer,omitempty" doc:"id of one offer, in place of a query"`
	Image        string   `json:"image,omitempty" doc:"a name that the rig lists"`
	Args         []string `json:"args,omitempty"`
	Env          []string `json:"env,omitempty" doc:"NAME=VALUE each; sent only after both signatures"`
	GPUs         int      `json:"gpus,omitempty" doc:"slots, 1 by default"`
	DurationMs   int64    `json:"duration_ms,omitempty" doc:"running time at most, 1 hour by default"`
	BudgetMicro  int64    `json:"budget_micro,omitempty" doc:"in millionths; by default what the whole duration costs"`
	Currency     string   `json:"currency,omitempty" doc:"USD by default"`
	UnattendedMs int64    `json:"unattended_ms,omitempty" doc:"how long the job may go on while this agent is away; 10 minutes by default"`
	DiskMB       int64    `json:"disk_mb,omitempty" doc:"of the job's disk, in millions of bytes; 10 GB by default"`

	Pay       string           `json:"pay,omitempty" doc:"method by which the lease is paid ahead; empty: the agent's choice; none: owed and settled later"`
	StopIdle  *market.IdleStop `json:"stop_idle,omitempty" doc:"ends the job when its cards do nothing for so long"`
	Deputies  bool             `json:"deputies,omitempty" doc:"this agent's deputies may sign, pay and collect"`
	Guarantee []byte           `json:"guarantee,omitempty" doc:"a sealed guarantee for what the lease may owe"`
	Residency *Residency       `json:"residency,omitempty" doc:"where the job may run; absent for anywhere"`

	Name       string      `json:"name,omitempty" doc:"[a-z0-9][a-z0-9-]{0,31}, unlike that of any other lease that is not over"`
	Labels     []string    `json:"labels,omitempty"`
	Ports      []Port      `json:"ports,omitempty" doc:"that the job listens on"`
	Src        string      `json:"src,omitempty" doc:"absolute path of a local folder whose contents are in /work, where the job begins"`
	SrcIgnore  bool        `json:"src_ignore,omitempty" doc:"leaves out what .gitignore and .haggleignore name"`
	Collect    []Collect   `json:"collect,omitempty" doc:"what comes home when the job has ended"`
	Secrets    []Secret    `json:"secrets,omitempty" doc:"files in memory, below /run/secrets; never stored"`
	ImageFile  string      `json:"image_file,omitempty" doc:"absolute path of a local OCI archive, in place of image"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty" doc:"keeps checkpoints; absent for none"`
	Resume     string      `json:"resume,omitempty" doc:"a lease whose newest checkpoint the job begins from"`
}

// StopRequest ends a lease's job.
type StopRequest struct {
	Kill bool `json:"kill" doc:"at once, without SIGTERM"`
}
