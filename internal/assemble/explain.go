package assemble

import (
	"errors"
	"io/fs"

	"haggle/internal/api"
	"haggle/internal/store"
	"haggle/market"
)

// Explain puts into words what keeps a program from starting: its files are in use, damaged, too new, in the wrong place, on
// a full disk or not readable. It returns false for other errors.
func Explain(err error) (market.Explanation, bool) {
	hints := []struct {
		is   error
		hint string
	}{
		{store.ErrLocked, "only one program may use them: `status` shows it; another --home keeps two apart"},
		{api.ErrInUse, "only one program may use them: `status` shows it; another --home keeps two apart"},
		{store.ErrDamaged, "every receipt that you exported is still good"},
		{store.ErrNewerSchema, "nothing was changed"},
		{store.ErrForeign, "give haggle and haggled different folders with --home"},
		{store.ErrNetworkDisk, "choose a folder on a local disk with --home"},
		{store.ErrFull, "make room and start again: nothing that was acknowledged is lost"},
		{fs.ErrPermission, "run it as the user who owns the file"},
	}
	for _, h := range hints {
		if errors.Is(err, h.is) {
			return market.Explanation{Message: err.Error(), Hint: h.hint, Class: market.ClassFailed}, true
		}
	}
	return market.Explanation{}, false
}
