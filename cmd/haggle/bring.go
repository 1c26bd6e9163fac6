package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/filesync"
	"haggle/internal/view"
	"haggle/market"
)

const (
	maxSecret = 48 << 10 // bytes of all secrets together, as market has it
	everyMin  = 10       // seconds between two checkpoints at least
)

// bringFlags are the flags of run and bid about what goes into a job and comes out of it.
type bringFlags struct {
	src, name, checkpoint, resume                 string
	noIgnore                                      bool
	collect, secrets, ports, labels, checkpointTo []string
}

func (f *bringFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.src, "src", "", "send this folder's contents to /work, where the job begins; .gitignore and .haggleignore are kept to")
	flags.BoolVar(&f.noIgnore, "no-ignore", false, "send what .gitignore and .haggleignore name, too")
	flags.StringArrayVar(&f.collect, "collect", nil, "bring REMOTE[:LOCAL] home when the job has ended (default LOCAL: the same name here); may be repeated")
	flags.StringArrayVar(&f.secrets, "secret", nil, "NAME from this shell's environment, or NAME=@FILE: a file below /run/secrets, in memory alone; may be repeated")
	flags.StringArrayVar(&f.ports, "port", nil, "[NAME=]PORT that the job listens on, for forward and open; may be repeated")
	flags.StringVar(&f.name, "name", "", "a name for the lease, which every command takes")
	flags.StringArrayVar(&f.labels, "label", nil, "a label for the lease; may be repeated")
	flags.StringVar(&f.checkpoint, "checkpoint", "", "keep a checkpoint EVERY[:DIR], such as 10m or 10m:/work/state (default DIR: /work/ckpt)")
	flags.StringArrayVar(&f.checkpointTo, "checkpoint-to", nil, "where checkpoints go: renter (the default), a presigned https URL with {seq}, or lease:ID; may be repeated")
	flags.StringVar(&f.resume, "resume", "", "begin from the newest checkpoint of this lease")
}

// request fills in what the flags say.
func (f *bringFlags) request(b *view.BidRequest) error {
	b.Name, b.Labels, b.Resume = f.name, f.labels, f.resume
	if f.src != "" {
		folder, err := localFolder(f.src)
		if err != nil {
			return err
		}
		b.Src, b.SrcIgnore = folder, !f.noIgnore
	}
	for _, parse := range []func(*view.BidRequest) error{f.collects, f.secret, f.portList, f.checkpoints} {
		if err := parse(b); err != nil {
			return err
		}
	}
	return nil
}

func localFolder(name string) (string, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return "", cli.Usage("--src: "+err.Error(), "name a folder of this machine")
	case !info.IsDir():
		return "", cli.Usage("--src: "+name+" is not a folder", "name the folder that the file is in; `haggle cp` copies single files")
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	return path, nil
}

func (f *bringFlags) collects(b *view.BidRequest) error {
	for _, text := range f.collect {
		remote, local, given := strings.Cut(text, ":")
		if remote == "" {
			return cli.Usage("--collect "+text+" names nothing in the job", "write --collect out/ or --collect out:results")
		}
		if !given || local == "" {
			local = filepath.Base(strings.TrimRight(remote, "/"))
		}
		path, err := filepath.Abs(local)
		if err != nil {
			return fmt.Errorf("find %s: %w", local, err)
		}
		b.Collect = append(b.Collect, view.Collect{Remote: remote, Local: path})
	}
	return nil
}

// secret reads secrets. A value on the command line would stand in the shell's history and in every list of processes.
func (f *bringFlags) secret(b *view.BidRequest) error {
	total := 0
	for _, text := range f.secrets {
		name, value, given := strings.Cut(text, "=")
		file, fromFile := strings.CutPrefix(value, "@")
		if given && !fromFile {
			return cli.Usage("--secret "+name+"=… holds the value itself, which other programs on this machine can read",
				"write --secret "+name+" for the environment's value, or --secret "+name+"=@FILE")
		}
		data, err := secretValue(name, file, fromFile)
		if err != nil {
			return err
		}
		if total += len(data); total > maxSecret {
			return cli.Usage("the secrets have more than 48 KiB", "encrypt a large file with one of them, and send it with --src")
		}
		b.Secrets = append(b.Secrets, view.Secret{Name: name, Value: data})
	}
	return nil
}

func secretValue(name, file string, fromFile bool) ([]byte, error) {
	if !fromFile {
		value, set := os.LookupEnv(name)
		if name == "" || !set {
			return nil, cli.Usage("--secret "+name+": there is no such variable in the environment", "set it, or write --secret "+name+"=@FILE")
		}
		return []byte(value), nil
	}
	in, err := os.Open(file)
	if err != nil {
		return nil, cli.Usage("--secret "+name+": "+err.Error(), "name a file that you can read")
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxSecret+1))
	if err != nil {
		return nil, cli.Usage("--secret "+name+": "+err.Error(), "name a file that you can read")
	}
	return data, nil
}

func (f *bringFlags) portList(b *view.BidRequest) error {
	for _, text := range f.ports {
		name, number, named := strings.Cut(text, "=")
		if !named {
			name, number = "", text
		}
		port, err := parsePort(number)
		if err != nil {
			return cli.Usage("--port "+text+": "+err.Error(), "write --port 8888 or --port jupyter=8888")
		}
		b.Ports = append(b.Ports, view.Port{Name: name, Port: port})
	}
	return nil
}

func (f *bringFlags) checkpoints(b *view.BidRequest) error {
	if f.checkpoint == "" && len(f.checkpointTo) == 0 {
		return nil
	}
	b.Checkpoint = &view.Checkpoint{To: f.checkpointTo}
	if f.checkpoint == "" {
		return nil
	}
	every, dir, _ := strings.Cut(f.checkpoint, ":")
	d, err := config.ParseDuration(every)
	if err != nil || d.Seconds() < everyMin {
		return cli.Usage(fmt.Sprintf("--checkpoint: %q is not a time of at least %ds", every, everyMin), "write --checkpoint 10m or --checkpoint 10m:DIR")
	}
	b.Checkpoint.EveryMs, b.Checkpoint.Dir = d.Milliseconds(), dir
	return nil
}

// imageFile returns the absolute path of an image that is a file of this machine, or "" for the name of a rig's image.
func imageFile(image string) (string, error) {
	explicit := strings.HasPrefix(image, "./") || strings.HasPrefix(image, "../") || filepath.IsAbs(image) || strings.HasPrefix(image, `.\`)
	suffix := strings.HasSuffix(image, ".tar") || strings.HasSuffix(image, ".oci")
	if !explicit && !suffix {
		return "", nil
	}
	info, err := os.Stat(image)
	switch {
	case err != nil && explicit:
		return "", cli.Usage("--image: "+err.Error(), "name an OCI archive of this machine, or an image of the rig")
	case err != nil:
		return "", nil // a rig may have an image of such a name
	case info.IsDir():
		return "", cli.Usage("--image "+image+" is a folder", "name an OCI archive: a .tar as `skopeo copy … oci-archive:FILE` writes it")
	}
	return filepath.Abs(image)
}

// sayUploads says what is sent before the job begins.
func (p *program) sayUploads(ctx context.Context, b view.BidRequest) {
	if b.ImageFile != "" {
		if info, err := os.Stat(b.ImageFile); err == nil {
			p.Say("--image: %s are sent unless the rig has them", cli.Bytes(info.Size()))
		}
	}
	if b.Src == "" {
		return
	}
	files, bytes, err := filesync.Size(ctx, b.Src, b.SrcIgnore)
	if err != nil {
		return // the agent meets the same fault, and tells it
	}
	p.Say("--src: %s, %s; sending them is not billed", plural(files, "file"), cli.Bytes(bytes))
}

// sayBrought says where what was collected is, and what is not here yet.
func (p *program) sayBrought(l view.Lease) {
	for _, c := range l.Collects {
		switch {
		case c.Done && c.Error == "":
			p.Say("collected %s: %s, %s in %s", clean(c.Remote), plural(c.Files, "file"), cli.Bytes(c.Bytes), clean(c.Local))
		case c.Done:
			p.Say("%s could not be collected: %s (hint: `haggle cp %s:%s .` while the rig keeps the disk)", clean(c.Remote), clean(c.Error), short(l.ID), clean(c.Remote))
		case c.Error != "":
			p.Say("%s is not here yet: %s; the agent tries again", clean(c.Remote), clean(c.Error))
		default:
			p.Say("%s is not here yet: the agent goes on bringing it to %s", clean(c.Remote), clean(c.Local))
		}
	}
}

// collecting reports whether something is still being brought home.
func collecting(l view.Lease) bool {
	for _, c := range l.Collects {
		if !c.Done {
			return true
		}
	}
	return false
}

// isPaused reports whether a lease's disk is kept and nothing runs.
func isPaused(l view.Lease) bool { return l.State == string(market.JobPaused) }
