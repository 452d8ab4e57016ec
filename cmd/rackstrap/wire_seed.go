package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/api/metadata"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// scope is what a token of an install is good for. The two are apart because the
// phone-home URL is in the meta-data, which every user of the installed system can
// read, and the seed may hold secrets.
type scope string

const (
	scopeSeed  scope = "seed"
	scopePhone scope = "phone"
)

// life is how long a token is good. A machine may be installed long before it is
// started for the first time where it stands; its seed on the disk has no end then,
// and the phone call should not have one much sooner.
func (s scope) life() time.Duration {
	if s == scopePhone {
		return 30 * 24 * time.Hour
	}
	return 24 * time.Hour
}

// seeds makes the seeds of installs, and serves the one of an install that asked
// for it (cloudinit's `serve`), under a path that cannot be guessed and ends.
type seeds struct {
	key      []byte
	now      func() time.Time
	workflow func(ctx context.Context, name string) (*workflow.Workflow, error)
	hardware func(ctx context.Context, uid string) (*hardware.Hardware, error)
	subnets  func() []*hardware.Subnet
	// base is our HTTP listener as a machine knows it, http://10.0.0.1:7080.
	base func(ctx context.Context, uid string) (string, error)
	// installation is this installation's id; sshKeys are its keys.
	installation string
	sshKeys      []string
}

// token is made of the workflow's name and uid, the end in Unix seconds and a MAC
// over them. A later workflow of that name, maybe for another machine, has another
// uid.
func (s *seeds) token(sc scope, w *workflow.Workflow) string {
	head := w.Meta.Name + "." + w.Meta.UID + "." + strconv.FormatInt(s.now().Add(sc.life()).Unix(), 10)
	return head + "." + s.mac(sc, head)
}

func (s *seeds) mac(sc scope, head string) string {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(string(sc) + " token\x00" + head))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// open finds the install of a token, and its machine. fs.ErrNotExist for a token
// that is not ours, has ended, or is of a system that is not installed any more, so
// that none can be told from another.
func (s *seeds) open(ctx context.Context, sc scope, token string) (*workflow.Workflow, *hardware.Hardware, error) {
	p := strings.Split(token, ".")
	if len(token) > 256 || len(p) != 4 || !hmac.Equal([]byte(s.mac(sc, strings.Join(p[:3], "."))), []byte(p[3])) {
		return nil, nil, fs.ErrNotExist
	}
	end, err := strconv.ParseInt(p[2], 10, 64)
	if err != nil || s.now().Unix() > end {
		return nil, nil, fs.ErrNotExist
	}
	w, err := s.workflow(ctx, p[0])
	if errors.Is(err, workflow.ErrNotFound) || (err == nil && w.Meta.UID != p[1]) {
		return nil, nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, nil, err
	}
	h, err := s.hardware(ctx, w.Status.HardwareUID)
	if errors.Is(err, workflow.ErrNotFound) {
		return nil, nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, nil, err
	}
	installed := h.Status.Install != nil && h.Status.Install.UID == w.Meta.UID
	if !installed && h.Status.Workflow != w.Meta.Name {
		return nil, nil, fs.ErrNotExist
	}
	return w, h, nil
}

// file is one file for the install of a token.
func (s *seeds) file(ctx context.Context, token, file string) ([]byte, error) {
	w, h, err := s.open(ctx, scopeSeed, token)
	if err != nil {
		return nil, err
	}
	files, err := s.of(ctx, h, w)
	if err != nil {
		return nil, err
	}
	b, ok := files[file]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return b, nil
}

// of makes what is served for the actions of a workflow; fs.ErrNotExist where none
// of them brings anything.
func (s *seeds) of(ctx context.Context, h *hardware.Hardware, w *workflow.Workflow) (metadata.Files, error) {
	out := metadata.Files{}
	for _, a := range w.Status.Actions {
		if a.Kind != workflow.KindCloudInit && a.Kind != workflow.KindSeedPartition && a.Kind != workflow.KindIgnition {
			continue
		}
		o, err := workflow.DecodeOptions(a.Kind, a.With)
		if err != nil {
			return nil, err
		}
		var files metadata.Files
		switch o := o.(type) {
		case *workflow.CloudInit:
			files, err = s.seed(ctx, h, w, metadata.Input{UserData: o.UserData, VendorData: o.VendorData, MetaData: o.MetaData})
		case *workflow.SeedPartition:
			files, err = s.partition(ctx, h, w, o)
		case *workflow.Ignition:
			err = ignition(h, o)
			files = metadata.Files{metadata.FileIgnition: []byte(o.Config)}
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(out, files)
	}
	if len(out) == 0 {
		return nil, fs.ErrNotExist
	}
	return out, nil
}

// partition makes the files of a seed partition, and its user-data under the name
// that says what Talos reads in it.
func (s *seeds) partition(ctx context.Context, h *hardware.Hardware, w *workflow.Workflow, o *workflow.SeedPartition) (metadata.Files, error) {
	f, err := s.seed(ctx, h, w, metadata.Input{UserData: o.UserData, VendorData: o.VendorData, MetaData: o.MetaData})
	if err != nil {
		return nil, err
	}
	if o.NetworkConfig != "" {
		f[metadata.FileNetworkConfig] = []byte(o.NetworkConfig)
	}
	f[metadata.FileTalos] = f[metadata.FileUserData]
	return f, nil
}

// seed makes the files of an install. The workflow's uid is the instance id, so
// each install is a first boot to cloud-init.
func (s *seeds) seed(ctx context.Context, h *hardware.Hardware, w *workflow.Workflow, in metadata.Input) (metadata.Files, error) {
	in.InstanceID, in.Keys = w.Meta.UID, s.sshKeys
	if c := h.Status.Claim; c != nil {
		in.ProviderID = hardware.ProviderID(s.installation, h.Meta.UID, c.ID)
	}
	base, err := s.base(ctx, h.Meta.UID)
	switch {
	case err == nil:
		in.PhoneHome = base + "/seed/" + s.token(scopePhone, w) + "/" + metadata.FilePhoneHome
	case w.Spec.WaitForPhoneHome:
		return nil, fmt.Errorf("waitForPhoneHome: the installed system cannot be told where to: %w", err)
	}
	return metadata.Seed(h, s.subnets(), in)
}

// pointer is the meta-data of a disk seed that names a served one: cloud-init's
// NoCloud reads on at seedfrom.
func (s *seeds) pointer(ctx context.Context, h *hardware.Hardware, w *workflow.Workflow) (string, error) {
	base, err := s.base(ctx, h.Meta.UID)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("instance-id: %q\nseedfrom: %q\n", w.Meta.UID, base+"/seed/"+s.token(scopeSeed, w)+"/"), nil
}
