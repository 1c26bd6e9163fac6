// Package checkpoint is how the state of a job leaves its rig: a folder's files as one stream, tar in zstd in age, which only
// the renter's key opens. The writing half runs inside the job, the reading half with the renter, who trusts neither the rig
// nor the job: what Restore writes stays inside the folder that it is given.
package checkpoint
