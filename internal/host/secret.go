package host

import (
	"context"
	"time"

	"haggle/market"
)

// secretsPatience is how long a job whose secrets this program has never seen, because it was started anew, waits for its renter to
// send them again.
const secretsPatience = time.Minute

// secretsOf takes the secrets out of a message, once they were checked. They are kept in memory and nowhere else.
func secretsOf(list []market.Secret) map[string][]byte {
	if len(list) == 0 {
		return nil
	}
	secrets := map[string][]byte{}
	for _, s := range list {
		secrets[s.Name] = append([]byte{}, s.Value...)
	}
	return secrets
}

// lacksSecrets reports whether the job needs secrets that are not there: those that came before this program began are lost.
func (l *lease) lacksSecrets() bool { return l.wants.Secrets > 0 && l.secrets == nil }

// remind takes secrets from a repeated acceptance. Those that are there already stay.
func (l *lease) remind(ctx context.Context, secrets []market.Secret) {
	if !l.lacksSecrets() || l.state.Job == market.JobEnded || market.CheckSecrets(l.wants, secrets) != nil {
		return
	}
	l.secrets = secretsOf(secrets)
	if l.state.Job == market.JobPreparing && !l.state.Ready {
		l.prepare(ctx)
	}
}

// prepare orders the job to be made, once all that it is made of is there. A job whose secrets are lost may have been made before
// they were: the engine is asked, and in the end the lease fails.
func (l *lease) prepare(ctx context.Context) {
	if l.awaitsArchive() || l.unpaid() {
		return
	}
	t := task{kind: taskPrepare, secrets: l.secrets}
	if l.lacksSecrets() {
		now := l.d.cfg.Clock().Mono
		if l.patience == 0 {
			l.patience = now + secretsPatience.Milliseconds()
		}
		t.hopeful = now < l.patience
	}
	l.order(ctx, t)
}

// impatient reports whether a job has waited for its secrets for long enough.
func (l *lease) impatient() bool {
	return l.state.Job == market.JobPreparing && !l.state.Ready && l.lacksSecrets() && l.patience > 0 &&
		l.d.cfg.Clock().Mono >= l.patience
}

// unpaid reports whether the job is made ready only once the first money has come.
func (l *lease) unpaid() bool { return l.state.Job == market.JobPreparing && !l.state.Funded() }

// awaitsArchive reports whether the job cannot be made before its renter has brought the image.
func (l *lease) awaitsArchive() bool {
	return archiveDue(l.state, l.wants) && !l.d.spool.whole(l.id, l.wants.Archive) &&
		!l.d.engine.has(l.wants.Image, l.state.Terms.Renter)
}

// archiveDue reports whether a lease is in a state in which the archive of its image may still be needed.
func archiveDue(s market.Lease, job market.Job) bool {
	return job.Archive > 0 && s.Attempt == 0 && !s.Ready && (s.Job == market.JobGranted || s.Job == market.JobPreparing)
}

// arrived says that the archive is whole. It runs on the lease's goroutine.
func (l *lease) arrived(ctx context.Context) error {
	if l.state.Job == market.JobPreparing && !l.state.Ready {
		l.prepare(ctx)
	}
	return nil
}

// emptySpool lets go of an archive that is not needed any more.
func (l *lease) emptySpool() {
	l.intake.cut()
	if err := l.d.spool.remove(l.id); err != nil {
		l.complain(err)
	}
}
