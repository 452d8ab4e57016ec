package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
	"github.com/rackstrap/rackstrap/hardware"
)

// Options say what is on the stage.
type Options struct {
	Name string
	// Bin is the appliance's binary.
	Bin string
	// ActionTime is how long each action of a machine takes; see sim.Options.
	ActionTime time.Duration
	// OS is what runs on an installed machine; see sim.Options. It phones home where nil.
	OS func(ctx context.Context, m *sim.Machine, s *sim.System)
}

// Stage is an appliance without any record, and an empty rack.
type Stage struct {
	Lab       *lab.Lab
	Appliance *rig.Appliance
	API       *client.Client
	Rack      *sim.Rack
	// URL is the appliance's, on the host's loopback.
	URL string
	// Tokens are secrets, one for each role but claimer.
	Tokens map[hardware.Role]string
	// Fingerprint is the SHA-256 of the certificate behind URL, in hex.
	Fingerprint string

	dir  string
	door *Door
}

// New opens a stage. It needs what a lab needs. ctx bounds the making only.
func New(ctx context.Context, o Options) (*Stage, error) {
	dir, err := os.MkdirTemp("", "rs") // a socket's path has at most 107 bytes
	if err != nil {
		return nil, err
	}
	s := &Stage{dir: dir}
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Stage) open(ctx context.Context, o Options) (err error) {
	if s.Lab, err = lab.New(ctx, lab.Options{Name: o.Name, Dir: s.dir, Subnet: netip.MustParsePrefix("10.77.0.0/16")}); err != nil {
		return err
	}
	a, err := rig.NewAppliance(s.Lab.Namespace, s.Lab.Bridge(), o.Bin, filepath.Join(s.dir, "appliance"))
	if err != nil {
		return err
	}
	if err := a.Start(ctx); err != nil {
		return err
	}
	s.Appliance, s.API = a, a.Client
	if o.OS == nil {
		o.OS = phoneHome
	}
	if s.Rack, err = sim.NewRack(ctx, sim.Options{Lab: s.Lab, OS: o.OS, ActionTime: o.ActionTime}); err != nil {
		return err
	}
	if s.door, err = OpenDoor(ctx, s.Lab.Namespace, net.JoinHostPort(s.Lab.Gateway().String(), client.DefaultPort)); err != nil {
		return err
	}
	s.URL = "https://" + s.door.Addr()
	s.Tokens = map[hardware.Role]string{}
	for _, role := range []hardware.Role{hardware.RoleAdmin, hardware.RoleOperator, hardware.RoleViewer} {
		t, err := s.API.CreateToken(ctx, "stage-"+string(role), api.NewTokenSpec{Role: role})
		if err != nil {
			return err
		}
		s.Tokens[role], s.Fingerprint = t.Secret, t.Fingerprint
	}
	return nil
}

// Env is what the programs in web/ui/test are told of an appliance, as variables of the
// environment.
func Env(url string, tokens map[hardware.Role]string, fingerprint string) []string {
	return []string{
		"RACKSTRAP_UI_URL=" + url,
		"RACKSTRAP_UI_ADMIN=" + tokens[hardware.RoleAdmin],
		"RACKSTRAP_UI_OPERATOR=" + tokens[hardware.RoleOperator],
		"RACKSTRAP_UI_VIEWER=" + tokens[hardware.RoleViewer],
		"RACKSTRAP_UI_FINGERPRINT=" + fingerprint,
	}
}

// Door is a further way to the appliance, for who breaks ways.
func (s *Stage) Door(ctx context.Context) (*Door, error) {
	return OpenDoor(ctx, s.Lab.Namespace, net.JoinHostPort(s.Lab.Gateway().String(), client.DefaultPort))
}

// Add puts a machine into the rack and its record, which change has seen, into the
// appliance.
func (s *Stage) Add(ctx context.Context, spec sim.Spec, change func(h *hardware.Hardware)) (*sim.Machine, error) {
	m, err := s.Rack.Add(spec)
	if err != nil {
		return nil, err
	}
	h := m.Record()
	if change != nil {
		change(h)
	}
	_, err = s.API.Hardware.Create(ctx, h)
	return m, err
}

// ImageName is an image that AddImage uploads, and imageBytes its size.
const (
	ImageName  = "debian-12"
	imageBytes = 64 << 20
)

// AddImage uploads an image that has the first sector of one.
func (s *Stage) AddImage(ctx context.Context, name, os, version string) error {
	image := make([]byte, imageBytes)
	image[510], image[511] = 0x55, 0xaa
	copy(image, name)
	_, err := s.API.UploadImage(ctx, name, bytes.NewReader(image), client.Upload{Size: imageBytes, Arch: "amd64", OS: os, OSVersion: version})
	return err
}

// Await waits until is says true of a machine's record.
func (s *Stage) Await(ctx context.Context, name string, is func(*hardware.Hardware) bool) error {
	if _, err := s.API.WaitHardware(ctx, name, is); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Close ends everything and leaves nothing.
func (s *Stage) Close() error {
	var err error
	if s.door != nil {
		err = s.door.Close()
	}
	if s.Rack != nil {
		err = errors.Join(err, s.Rack.Close())
	}
	if s.Appliance != nil {
		err = errors.Join(err, s.Appliance.Stop())
	}
	if s.Lab != nil {
		err = errors.Join(err, s.Lab.Close())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
