package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/api/metadata"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// seedLife is how long the seed of an install is served.
const seedLife = 24 * time.Hour

// seeds serves the seed of an install that asked for it (cloudinit's `serve`),
// under a path that cannot be guessed and ends.
type seeds struct {
	key      []byte
	now      func() time.Time
	workflow func(ctx context.Context, name string) (*workflow.Workflow, error)
	hardware func(ctx context.Context, uid string) (*hardware.Hardware, error)
	subnets  func() []*hardware.Subnet
}

// token is made of the workflow's name and uid, the end in Unix seconds and a MAC
// over them. A later workflow of that name, maybe for another machine, has another
// uid.
func (s *seeds) token(w *workflow.Workflow) string {
	head := w.Meta.Name + "." + w.Meta.UID + "." + strconv.FormatInt(s.now().Add(seedLife).Unix(), 10)
	return head + "." + s.mac(head)
}

func (s *seeds) mac(head string) string {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte("seed token\x00" + head))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// file is one file of the seed of a token; fs.ErrNotExist for a token that is not
// ours or has ended, so that neither can be told from the other.
func (s *seeds) file(ctx context.Context, token, file string) ([]byte, error) {
	p := strings.Split(token, ".")
	if len(token) > 256 || len(p) != 4 || !hmac.Equal([]byte(s.mac(strings.Join(p[:3], "."))), []byte(p[3])) {
		return nil, fs.ErrNotExist
	}
	end, err := strconv.ParseInt(p[2], 10, 64)
	if err != nil || s.now().Unix() > end {
		return nil, fs.ErrNotExist
	}
	w, err := s.workflow(ctx, p[0])
	if errors.Is(err, workflow.ErrNotFound) || (err == nil && w.Meta.UID != p[1]) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	files, err := s.of(ctx, w)
	if err != nil {
		return nil, err
	}
	b, ok := files[file]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return b, nil
}

// of makes the seed of a workflow's cloudinit action.
func (s *seeds) of(ctx context.Context, w *workflow.Workflow) (metadata.Files, error) {
	for _, a := range w.Status.Actions {
		if a.Kind != workflow.KindCloudInit {
			continue
		}
		o, err := workflow.DecodeOptions(a.Kind, a.With)
		if err != nil {
			return nil, err
		}
		h, err := s.hardware(ctx, w.Status.HardwareUID)
		if errors.Is(err, workflow.ErrNotFound) {
			return nil, fs.ErrNotExist
		}
		if err != nil {
			return nil, err
		}
		return makeSeed(h, s.subnets(), w, o.(*workflow.CloudInit))
	}
	return nil, fs.ErrNotExist
}

// makeSeed makes the files of an install; the workflow's uid is the instance id,
// so each install is a first boot to cloud-init.
func makeSeed(h *hardware.Hardware, subnets []*hardware.Subnet, w *workflow.Workflow, o *workflow.CloudInit) (metadata.Files, error) {
	return metadata.Seed(h, subnets, metadata.Input{
		InstanceID: w.Meta.UID, UserData: o.UserData, VendorData: o.VendorData, MetaData: o.MetaData,
	})
}

// pointer is the meta-data of a disk seed that names a served one: cloud-init's
// NoCloud reads on at seedfrom.
func pointer(w *workflow.Workflow, url string) string {
	return fmt.Sprintf("instance-id: %q\nseedfrom: %q\n", w.Meta.UID, url)
}
