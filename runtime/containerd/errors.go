//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc/status"

	"haggle/runtime"
)

// classify wraps an error of containerd into the class of package runtime that fits, and says what was tried.
func classify(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	what := fmt.Sprintf(format, args...)
	err = native(err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", what, err)
	case errdefs.IsCanceled(err):
		return fmt.Errorf("%s: %w: %w", what, context.Canceled, err)
	case errdefs.IsDeadlineExceeded(err):
		return fmt.Errorf("%s: %w: %w", what, context.DeadlineExceeded, err)
	case errdefs.IsUnavailable(err):
		return fmt.Errorf("%s: %w: %w", what, runtime.ErrUnavailable, err)
	case errdefs.IsNotFound(err):
		return fmt.Errorf("%s: %w: %w", what, runtime.ErrNotFound, err)
	case errdefs.IsAlreadyExists(err), errdefs.IsFailedPrecondition(err):
		return fmt.Errorf("%s: %w: %w", what, runtime.ErrConflict, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// native turns what came over gRPC into the error classes of containerd. Some of its client's calls have done so
// already, and doing it again would lose the class.
func native(err error) error {
	if _, raw := status.FromError(err); raw {
		return errgrpc.ToNative(err)
	}
	return err
}

// classifyStart is classify for the moment in which runc first sees the command. Runc tells a wrong command from
// a fault of its own in words only.
func classifyStart(err error, what, id string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, fault := range []string{"executable file not found", "exec: ", "exec user process", "mkdir cwd", "chdir to cwd"} {
		if strings.Contains(text, fault) {
			return fmt.Errorf("%s job %s: %w: %w", what, id, runtime.ErrInvalidSpec, err)
		}
	}
	return classify(err, "%s job %s", what, id)
}
