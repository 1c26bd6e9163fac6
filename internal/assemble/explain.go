package assemble

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/internal/store"
	"haggle/market"
	"haggle/p2p"
)

// Explain puts into words what keeps a program from starting: it runs already, its files are damaged, too new, in the wrong
// place, on a full disk or not readable, its key is not safe, or its port is taken. It returns false for other errors. status is
// the command that shows the program that runs.
func Explain(err error, status string) (market.Explanation, bool) {
	program, _, _ := strings.Cut(status, " ")
	if errors.Is(err, ErrStopFirst) {
		stop := map[string]string{"haggle": "`haggle agent stop --force` ends the agent; jobs go on", "haggled": "`systemctl stop haggled` ends the daemon; jobs go on"}
		return market.Explanation{Message: err.Error(), Hint: stop[program], Class: market.ClassFailed}, true
	}
	if errors.Is(err, store.ErrLocked) || errors.Is(err, api.ErrInUse) {
		return market.Explanation{
			Message: "it runs already: " + err.Error(), Hint: "`" + status + "` shows it; another --home keeps two apart", Class: market.ClassFailed,
		}, true
	}
	var fault *p2p.Fault
	if errors.As(err, &fault) {
		return market.Explanation{Message: fault.Problem, Hint: fault.Hint, Class: market.ClassFailed}, true
	}
	for _, h := range []struct {
		is   error
		hint string
	}{
		{store.ErrDamaged, "`" + program + " restore FILE` puts back a copy, of those in the folder backups beside the database or of your own, and keeps " +
			"what is there for what it still proves; without a copy, move it away with the files beside it"},
		{store.ErrNewerSchema, "nothing was changed"},
		{store.ErrOtherKey, "a copy goes with its key, which is in no copy: put the key file that belongs to it in its place first"},
		{store.ErrOtherNetwork, "set the network to the copy's, or choose another copy"},
		{store.ErrForeign, "give haggle and haggled different folders with --home"},
		{store.ErrNetworkDisk, "choose a folder on a local disk with --home"},
		{store.ErrFull, "make room and start again: nothing that was acknowledged is lost"},
		{syscall.ENOSPC, "make room on that disk and start again: nothing that was acknowledged is lost"},
		{syscall.EROFS, "mount that disk for writing, or choose another folder with --home"},
		{config.ErrFolder, "choose a folder that you may write to with --home"},
		{fs.ErrPermission, "run it as the user who owns the file, or choose another folder with --home"},
	} {
		if errors.Is(err, h.is) {
			return market.Explanation{Message: err.Error(), Hint: h.hint, Class: market.ClassFailed}, true
		}
	}
	return market.Explanation{}, false
}
