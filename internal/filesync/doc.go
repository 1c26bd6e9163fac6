// Package filesync copies files and folders between two programs over one stream of bytes: the renter's program at one end and
// the door of a job at the other. Contents are compared in chunks by their hashes, so that what is there already is not sent and
// a copy that was killed goes on where it was.
//
// Neither end trusts the other. Whatever arrives is bounded in size, depth and count, and is written through an os.Root of the
// target folder, so that no name and no symlink leads out of it.
package filesync

import (
	"context"
	"io"
	"os"
	"runtime"
)

// The bounds that hold for every copy.
const (
	// MaxDepth is how many folders a path may have, the last name included.
	MaxDepth = 64
	// MaxName is how many bytes one name may have.
	MaxName = 255
	// MaxPath is how many bytes a path or the target of a symlink may have.
	MaxPath = 4096
	// DefaultMaxEntries is how many files, folders and symlinks one copy may have where the Config says nothing.
	DefaultMaxEntries = 1_000_000
)

// PushConfig says what Push sends, and where to.
//
// From is a local path. A file becomes the file To, or a file of the same name in To where To is a folder or ends in "/". A folder
// becomes To/NAME, or, where From ends in "/" or is "." or "..", its contents become the contents of To. To is a path at the far
// side with "/" between its names, relative to the far side's base.
type PushConfig struct {
	From string
	To   string
	// Delete removes what the far folder has and From has not. What is ignored is not removed.
	Delete bool
	// Ignore leaves out what .gitignore and .haggleignore files in the folder name, and every .git.
	Ignore bool
	// Checksum compares contents where size, time and mode are the same. Otherwise those three are enough.
	Checksum bool
	// Workers is how many files are read at a time. Zero means twice the processors, at most 8.
	Workers int
	// Progress is called from one goroutine, at most ten times a second, and once at the end. Nil is allowed.
	Progress func(Progress)
}

// PullConfig says what Pull fetches, and where to. From and To have the rules of PushConfig with the sides exchanged: From is
// a path of the far side, and To a local one.
type PullConfig struct {
	From string
	To   string
	// Delete removes what the local folder has and the far one has not.
	Delete bool
	// Checksum compares contents where size, time and mode are the same.
	Checksum bool
	// MaxBytes is how many bytes the files may have together. Zero means that only the disk is a limit.
	MaxBytes int64
	// MaxEntries is how many files, folders and symlinks are accepted. Zero means DefaultMaxEntries.
	MaxEntries int64
	// Sync brings everything to the disk before Pull returns, for what is removed at the far side afterwards. Without it, a local
	// power failure just after can lose files, as with cp.
	Sync bool
	// Workers is how many files are written at a time. Zero means twice the processors, at most 8.
	Workers int
	// Progress is called from one goroutine, at most ten times a second, and once at the end. Nil is allowed.
	Progress func(Progress)
}

// ServeConfig says what the far side may do.
type ServeConfig struct {
	// Base is the folder that relative paths start from. It is made when something is pushed into it.
	Base string
	// Root is a folder that no path leads out of: "/x" means Root/x, and Base is a path in it, too. Empty means that paths are the
	// system's own, with the rights of this process.
	Root string
	// MaxEntries and MaxBytes bound what is accepted, as in PullConfig.
	MaxEntries int64
	MaxBytes   int64
	// MaxPath bounds the length of a path in the target. Zero means the package's MaxPath, which is also the most.
	MaxPath int
	// Sync brings what is pushed to the disk before the other side is told that it is complete.
	Sync bool
	// Workers is as in PushConfig.
	Workers int
}

// Progress says how far a copy is. No field but Current and Scanning ever goes back.
type Progress struct {
	// Files and Bytes are what is known of so far; while Scanning they still grow.
	Files, FilesDone int64
	Bytes, BytesDone int64
	// Sent is the bytes of contents that crossed the stream.
	Sent int64
	// Current is the path of a file that is being copied, as its owner wrote it: strip it before it is shown.
	Current  string
	Scanning bool
}

// Report says what a copy did.
type Report struct {
	// Files and Bytes are the regular files of the source and their sizes together.
	Files, Bytes int64
	// Sent is the bytes of contents that crossed the stream, Same the files that needed none.
	Sent, Same int64
	// Skipped counts what a copy leaves out: devices, sockets, symlinks that lead out, names that the receiving system cannot have,
	// and files that vanished while they were copied. Failed counts files that could not be read; the error names the first.
	Skipped, Failed int64
	// Deleted counts what Delete removed; a folder counts once.
	Deleted int64
	// Digest is the hexadecimal BLAKE3 of names, kinds, modes and contents, as Digest computes it. It is empty where something was
	// skipped or failed, or where a file was taken for the same without reading it.
	Digest string
}

// Serve is the far side of one Push or Pull. It returns when the copy has ended, with a *Error where it failed for a reason that the
// other side was told. When ctx ends, Serve ends, provided that c has SetDeadline or Close, which it then uses.
func Serve(ctx context.Context, c io.ReadWriter, cfg ServeConfig) error {
	return serve(ctx, c, cfg)
}

// Push copies local files to the far side. It returns a report of what was done also beside an error, which is a *Error where
// one of the two sides could not go on, and otherwise the stream's. When ctx ends, Push ends, provided that c has SetDeadline or
// Close, which it then uses. The stream is of no use afterwards.
func Push(ctx context.Context, c io.ReadWriter, cfg PushConfig) (Report, error) {
	return push(ctx, c, cfg)
}

// Pull copies files of the far side to this machine, with the rules of Push.
func Pull(ctx context.Context, c io.ReadWriter, cfg PullConfig) (Report, error) {
	return pull(ctx, c, cfg)
}

// Size counts the regular files below root, or root itself, and their bytes, as Push would send them.
func Size(ctx context.Context, root string, ignore bool) (files, bytes int64, err error) {
	src, err := openLocalSource(root)
	if err != nil {
		return 0, 0, err
	}
	defer src.close()
	s := scanner{ignore: ignore, workers: workers(0), emit: func(e *entry) error {
		if e.kind == kindFile {
			files++
			bytes += e.size
		}
		return nil
	}}
	if err := s.run(ctx, src); err != nil {
		return 0, 0, err
	}
	return files, bytes, s.firstErr
}

// Digest reads everything below root and returns what Report.Digest is for a copy of it.
func Digest(ctx context.Context, root string, ignore bool) (string, error) {
	return digestTree(ctx, root, ignore)
}

func workers(n int) int {
	if n <= 0 {
		n = min(8, 2*runtime.NumCPU())
	}
	return min(n, 64)
}

const fileModeMask = os.ModePerm
