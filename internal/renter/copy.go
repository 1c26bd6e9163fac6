package renter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"haggle/internal/filesync"
	"haggle/internal/tunnel"
	"haggle/internal/view"
	"haggle/market"
)

// Copy copies files between this machine and a lease's job, and tells its progress at most ten times a second. It goes on over
// connections that break; the end of ctx ends it. What has arrived stays, and the next copy goes on from there. The error has one of
// the codes of files, or is the rig's.
func (a *Agent) Copy(ctx context.Context, id string, c view.CopyRequest, progress func(view.Progress)) (view.CopyReport, error) {
	r, err := a.find(ctx, id)
	if err != nil {
		return view.CopyReport{}, err
	}
	local, remote := c.To, c.From
	if c.Push {
		local, remote = c.From, c.To
	}
	switch {
	case !isLocal(local):
		return view.CopyReport{}, badRequest("a local path is not absolute: " + clip(local))
	case len(remote) > maxPath:
		return view.CopyReport{}, badRequest("the path in the job is too long")
	}
	tell := func(p filesync.Progress) {
		if progress != nil {
			progress(progressView("", p))
		}
	}
	var report filesync.Report
	if c.Push {
		report, err = a.push(ctx, r, filesync.PushConfig{From: local, To: far(remote), Delete: c.Delete, Ignore: c.Ignore, Progress: tell})
	} else {
		report, err = a.pull(ctx, r, filesync.PullConfig{From: far(remote), To: local, Delete: c.Delete, Progress: tell})
	}
	return view.CopyReport{
		Files: report.Files, Bytes: report.Bytes, Sent: report.Sent, Same: report.Same,
		Skipped: report.Skipped, Digest: report.Digest,
	}, err
}

// push copies local files into a job.
func (a *Agent) push(ctx context.Context, r Record, c filesync.PushConfig) (filesync.Report, error) {
	v, err := a.channel(ctx, r, tunnel.KindFiles, tunnel.FilesArgs{}, filesWindow)
	if err != nil {
		return filesync.Report{}, err
	}
	report, err := filesync.Push(ctx, v, c)
	_ = v.Close() // the report says that all has arrived
	return report, v.fault(ctx, err)
}

// pull copies files of a job to this machine.
func (a *Agent) pull(ctx context.Context, r Record, c filesync.PullConfig) (filesync.Report, error) {
	v, err := a.channel(ctx, r, tunnel.KindFiles, tunnel.FilesArgs{}, filesWindow)
	if err != nil {
		return filesync.Report{}, err
	}
	report, err := filesync.Pull(ctx, v, c)
	_ = v.Close() // the report says that all has arrived
	return report, v.fault(ctx, err)
}

func progressView(what string, p filesync.Progress) view.Progress {
	return view.Progress{
		What: what, Files: p.Files, FilesDone: p.FilesDone, Bytes: p.Bytes, BytesDone: p.BytesDone, Sent: p.Sent,
		Current: market.Printable(p.Current), Scanning: p.Scanning,
	}
}

// fileFault turns an error of a copy into one for people.
func fileFault(ctx context.Context, err error) error {
	var told *filesync.Error
	var coded *market.Error
	switch {
	case err == nil, errors.As(err, &coded):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("copy: %w", context.Cause(ctx))
	case !errors.As(err, &told):
		if err := doorFault(err); market.CodeOf(err) != market.CodeInternal {
			return err
		}
		return fmt.Errorf("%w: %w", market.NewError(market.CodeTunnelGone, "why", "it broke and did not come back"), err)
	}
	return fmt.Errorf("%w: %w", toldFault(told), err)
}

// toldFault finds the words for what one side of a copy said.
func toldFault(told *filesync.Error) error {
	where := clipText(told.Path)
	switch told.Code {
	case filesync.CodeNotFound:
		return market.NewError(market.CodeFileNotFound, "path", where)
	case filesync.CodeNoSpace:
		return market.NewError(market.CodeFileNoSpace, "path", where)
	case filesync.CodePermission:
		return market.NewError(market.CodeFileDenied, "path", where)
	case filesync.CodeBadPath:
		return market.NewError(market.CodeFileBadPath, "path", where, "why", clipText(told.Message))
	case filesync.CodeChanged:
		return market.NewError(market.CodeFileChanged, "path", where)
	}
	return market.NewError(market.CodeCopyFailed, "why", clipText(told.Error()))
}

// localFault names what is wrong with a local file.
func localFault(path string, err error) error {
	name := clipText(filepath.Base(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", market.NewError(market.CodeFileNotFound, "path", name), err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: %w", market.NewError(market.CodeFileDenied, "path", name), err)
	}
	return fmt.Errorf("%w: %w", market.NewError(market.CodeCopyFailed, "why", clipText(err.Error())), err)
}
