package runtimetest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"haggle/runtime"
	"haggle/runtime/archive"
)

type fakeImage struct {
	runtime.Image
	config v1.ImageConfig
}

// AddImage makes an image without an archive. The digest is made from the name.
func (f *Fake) AddImage(name string, config v1.ImageConfig) runtime.Image {
	f.mu.Lock()
	defer f.mu.Unlock()
	img := fakeImage{runtime.Image{Name: name, Digest: digestOf(name), Size: int64(len(name))}, config}
	f.images[name] = img
	return img.Image
}

// Images implements runtime.Runtime.
func (f *Fake) Images(ctx context.Context) ([]runtime.Image, error) {
	defer f.mu.Unlock()
	if err := f.enter(ctx, "Images"); err != nil {
		return nil, err
	}
	var all []runtime.Image
	for _, img := range f.images {
		all = append(all, img.Image)
	}
	slices.SortFunc(all, func(a, b runtime.Image) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// Import implements runtime.Runtime.
func (f *Fake) Import(ctx context.Context, name string, r io.Reader) (runtime.Image, error) {
	info, err := archive.Inspect(r)
	defer f.mu.Unlock()
	if err := f.enter(ctx, "Import"); err != nil {
		return runtime.Image{}, err
	}
	if err != nil {
		return runtime.Image{}, fmt.Errorf("import %s: %w: %w", name, runtime.ErrBadArchive, err)
	}
	img := fakeImage{runtime.Image{Name: name, Digest: info.Digest, Size: info.Size}, info.Config}
	f.images[name] = img
	return img.Image, nil
}

// RemoveImage implements runtime.Runtime.
func (f *Fake) RemoveImage(ctx context.Context, digest string) error {
	defer f.mu.Unlock()
	if err := f.enter(ctx, "RemoveImage"); err != nil {
		return err
	}
	maps.DeleteFunc(f.images, func(_ string, img fakeImage) bool { return img.Digest == digest })
	return nil
}

// findImage finds what a job can be made of: an image, or what is left of one in the job whose disk it takes over. The lock is
// held.
func (f *Fake) findImage(spec runtime.Spec) (fakeImage, bool) {
	for _, img := range f.images {
		if img.Digest == spec.Image {
			return img, true
		}
	}
	if old := f.jobs[spec.From]; old != nil && old.image.Digest == spec.Image {
		return old.image, true
	}
	return fakeImage{}, false
}
