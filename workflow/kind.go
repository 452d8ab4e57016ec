package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Kind names what an action does. Every kind has an Options type here and a
// runner in worker/action.
type Kind string

// The kinds.
const (
	KindDiskWipe      Kind = "disk.wipe"
	KindImageWrite    Kind = "image.write"
	KindDiskGrow      Kind = "disk.grow"
	KindFileWrite     Kind = "file.write"
	KindNetworkConfig Kind = "network.config"
	KindCloudInit     Kind = "cloudinit"
	KindIgnition      Kind = "ignition"
	KindSeedPartition Kind = "seed.partition"
	KindReboot        Kind = "reboot"
	KindPowerOff      Kind = "poweroff"
)

// Options are the settings of one action, as its `with:` gives them.
type Options interface {
	// Validate says everything that is wrong with the options by themselves.
	Validate(*hardware.Checker, string)
}

// kindInfo is what the engine knows of a kind.
type kindInfo struct {
	does    string
	options func() Options
	timeout time.Duration // where the template names none
	retries int           // where the template names none
}

func kinds() map[Kind]kindInfo {
	return map[Kind]kindInfo{
		KindDiskWipe:      {"Destroys what is on a disk, or on all of them.", func() Options { return new(DiskWipe) }, 0, 1},
		KindImageWrite:    {"Streams an image onto a disk.", func() Options { return new(ImageWrite) }, 0, 2},
		KindDiskGrow:      {"Grows the last partition to the end of the disk, or to the partition of a seed.", func() Options { return new(DiskGrow) }, 2 * time.Minute, 1},
		KindFileWrite:     {"Writes one file into the installed system.", func() Options { return new(FileWrite) }, 2 * time.Minute, 1},
		KindNetworkConfig: {"Writes the network configuration of the installed system.", func() Options { return new(NetworkConfig) }, 2 * time.Minute, 1},
		KindCloudInit:     {"Writes a NoCloud seed into the installed system.", func() Options { return new(CloudInit) }, 2 * time.Minute, 1},
		KindIgnition:      {"Writes an Ignition config, byte by byte, to where the system on the disk reads it at its first start.", func() Options { return new(Ignition) }, 2 * time.Minute, 1},
		KindSeedPartition: {"Writes a NoCloud seed into a small partition of its own at the end of the disk.", func() Options { return new(SeedPartition) }, 2 * time.Minute, 1},
		KindReboot:        {"Restarts the machine into the disk.", func() Options { return new(Reboot) }, 2 * time.Minute, 1},
		KindPowerOff:      {"Switches the machine off.", func() Options { return new(PowerOff) }, 2 * time.Minute, 1},
	}
}

// Kinds lists all kinds, sorted.
func Kinds() []Kind {
	var out []Kind
	for k := range kinds() {
		out = append(out, k)
	}
	sort.Slice(out, func(i, j int) bool { return out[i] < out[j] })
	return out
}

// writesDisk reports whether an action of the kind touches a disk.
func (k Kind) writesDisk() bool { return !k.last() }

// destroys reports whether it overwrites disks.
func (k Kind) destroys() bool { return k == KindImageWrite || k == KindDiskWipe }

// last reports whether the worker is gone after it.
func (k Kind) last() bool { return k == KindReboot || k == KindPowerOff }

// Known reports whether k is a kind.
func (k Kind) Known() bool { _, ok := kinds()[k]; return ok }

// DecodeOptions reads the options of an action of kind k; unknown kinds, unknown
// fields and wrong types are errors that name the field.
func DecodeOptions(k Kind, with json.RawMessage) (Options, error) {
	info, ok := kinds()[k]
	if !ok {
		return nil, fmt.Errorf("kind %q is not known (one of %s)", k, joinKinds())
	}
	o := info.options()
	if len(with) == 0 || string(with) == "null" {
		with = []byte("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(with))
	dec.DisallowUnknownFields()
	if err := dec.Decode(o); err != nil {
		return nil, fmt.Errorf("with: %s (fields of %s: %s)", strings.TrimPrefix(err.Error(), "json: "), k, strings.Join(optionFields(o), ", "))
	}
	return o, nil
}

func joinKinds() string {
	var s []string
	for _, k := range Kinds() {
		s = append(s, string(k))
	}
	return strings.Join(s, ", ")
}

// optionFields lists the JSON names of an Options struct.
func optionFields(o Options) []string {
	var out []string
	t := reflect.TypeOf(o).Elem()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}
