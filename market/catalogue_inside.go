package market

// Codes of what happens inside a lease: uploads, kept disks, extensions, tunnels and files.
const (
	CodePriceRose       Code = "price_rose"
	CodeNotPaused       Code = "not_paused"
	CodeKeepEnded       Code = "keep_ended"
	CodeBudgetSpent     Code = "budget_spent"
	CodeTimeSpent       Code = "time_spent"
	CodeNoBring         Code = "no_bring"
	CodeUploadMissing   Code = "upload_missing"
	CodeUploadFailed    Code = "upload_failed"
	CodeArchiveMismatch Code = "archive_mismatch"
	CodeSecretsLost     Code = "secrets_lost"
	CodeNoDoor          Code = "no_door"
	CodeCheckpointNone  Code = "checkpoint_none"
	CodeNameTaken       Code = "name_taken"
	CodeBadName         Code = "bad_name"
	CodeFileNotFound    Code = "file_not_found"
	CodeFileNoSpace     Code = "file_no_space"
	CodeFileBadPath     Code = "file_bad_path"
	CodeFileChanged     Code = "file_changed"
	CodeFileDenied      Code = "file_denied"
	CodeCopyFailed      Code = "copy_failed"
	CodeTunnelGone      Code = "tunnel_gone"
	CodePortClosed      Code = "port_closed"
	CodeTooManyTunnels  Code = "too_many_tunnels"
)

func insideErrors(code Code) (entry, bool) {
	e, ok := map[Code]entry{
		CodePriceRose:       {ClassRefused, "the rig now asks {now}, more than the lease's {lease}: it does not extend at the old price", "the lease goes on as it was; more budget alone is always accepted, more time only at the lease's own price"},
		CodeNotPaused:       {ClassFailed, "the lease is {state}, not paused", "only a lease whose disk is kept (`haggle stop --keep`) can be started again"},
		CodeKeepEnded:       {ClassFailed, "the job has ended ({reason}), so its disk cannot be kept any more", "the rig holds it for a day after the end: copy what you need with `haggle cp`"},
		CodeBudgetSpent:     {ClassBudget, "the budget of {budget} is used up", "`haggle extend LEASE --budget AMOUNT` adds to it"},
		CodeTimeSpent:       {ClassFailed, "the leased time of {duration} is used up", "`haggle extend LEASE --for TIME` adds to it"},
		CodeNoBring:         {ClassRefused, "this rig does not take images that renters bring", "search with brings=true, or use one of the rig's own images"},
		CodeUploadMissing:   {ClassRefused, "what the renter sends before the start did not arrive in time", "nothing is billed; try again, or choose a rig with a faster link"},
		CodeUploadFailed:    {ClassFailed, "what the job needs could not be sent: {why}", "nothing is billed; put it right and run again"},
		CodeArchiveMismatch: {ClassRefused, "the image that was sent is not the one that the lease names", "nothing is billed; the file may have changed since the bid: run again"},
		CodeSecretsLost:     {ClassFailed, "the job's secrets were lost with a restart before the job had them: they are kept nowhere", "nothing is billed; run again"},
		CodeNoDoor:          {ClassRefused, "the job cannot be entered now: the lease is {state}", "a job can be entered from when it is made until its disk is destroyed"},
		CodeCheckpointNone:  {ClassNotFound, "there is no checkpoint of lease {lease}", "`haggle checkpoints` lists them; a job writes them into /work/ckpt"},
		CodeNameTaken:       {ClassUsage, "the name {name} belongs to lease {lease}, which is not over", "choose another name, or rename that lease"},
		CodeBadName:         {ClassUsage, "{name} is not a name for a lease", "use 1 to 32 small letters, digits and dashes, and no dash in front"},
		CodeFileNotFound:    {ClassNotFound, "there is no {path}", "look with `haggle exec LEASE -- ls`; relative paths begin at /work"},
		CodeFileNoSpace:     {ClassFailed, "there is no room for {path}", "what has arrived stays; make room and run the same command again: it goes on where it stopped"},
		CodeFileBadPath:     {ClassRefused, "{path} is not a path that may be written here: {why}", "nothing outside the target folder is ever written"},
		CodeFileChanged:     {ClassFailed, "{path} changed while it was copied", "run the same command again: only what differs is sent"},
		CodeFileDenied:      {ClassFailed, "{path}: permission denied", "compare the file's owner and mode with the user that the job runs as"},
		CodeCopyFailed:      {ClassFailed, "the copy stopped: {why}", "run the same command again: it goes on where it stopped"},
		CodeTunnelGone:      {ClassUnreachable, "the connection into the lease is gone: {why}", "`haggle leases` shows the lease's state; run the command again"},
		CodePortClosed:      {ClassUnreachable, "nothing in the job listens on port {port}", "the program may still be starting; `haggle logs` shows what it says"},
		CodeTooManyTunnels:  {ClassRefused, "too many connections into this lease at once", "close some and try again; one lease has {most}"},
	}[code]
	return e, ok
}
