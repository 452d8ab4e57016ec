package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// Limits on the text in options, in bytes: what is written for one install is
// kept with its workflow, whose store value has at most 1 MiB.
const (
	maxText      = 256 << 10 // user-data and what else is written as a whole file
	maxShortText = 64 << 10  // meta-data, network configuration, certificates
)

func checkSize(c *hardware.Checker, field, text string, limit int) {
	if len(text) > limit {
		c.Addf(field, "has %d bytes, the limit is %d (put what is large on a web server, and let the system fetch it)", len(text), limit)
	}
}

// Ignition writes a config where the Ignition of the installed system reads it at
// its first start: Fedora CoreOS and its relatives in the file system `boot`,
// Flatcar in the file system `OEM`.
type Ignition struct {
	Disk Disk `json:"disk,omitempty"`
	// Config is the Ignition config in JSON, written byte by byte; the record's
	// user-data where empty.
	Config string `json:"config,omitempty" secret:"true"`
}

// Validate implements Options.
func (o *Ignition) Validate(c *hardware.Checker, at string) {
	o.Disk.check(c, at+".disk", false)
	if o.Config != "" {
		c.Add(at+".config", ValidIgnition(o.Config))
	}
}

// ValidIgnition says why config is no Ignition config, or nil. It never quotes the
// config, which may hold secrets. Ignition itself judges the rest of it, by the
// rules of the config's version.
func ValidIgnition(config string) error {
	if len(config) > maxText {
		return fmt.Errorf("has %d bytes, the limit is %d (put what is large on a web server, and name it with ignition.config.merge)", len(config), maxText)
	}
	if strings.TrimSpace(config) == "" {
		return errors.New("is empty (give an Ignition config in JSON)")
	}
	var doc struct {
		Ignition *struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}
	if err := json.Unmarshal([]byte(config), &doc); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return fmt.Errorf("is not JSON at byte %d (is it Butane? make Ignition of it: `butane --strict config.bu`)", syntax.Offset)
		}
		return errors.New("is not an Ignition config: it has to be a JSON object with ignition.version as text")
	}
	if doc.Ignition == nil || doc.Ignition.Version == "" {
		return errors.New(`has no ignition.version (an Ignition config begins with {"ignition": {"version": "3.4.0"}})`)
	}
	return nil
}

// SeedPartition writes a NoCloud seed into a small partition of its own at the end
// of the disk, with a FAT file system that is labelled `cidata`: for images without
// a root file system that could be written to, such as Talos (its nocloud image).
// Where disk.grow is used too, it comes after this.
type SeedPartition struct {
	Disk Disk `json:"disk,omitempty"`
	// UserData is written byte by byte: a Talos machine config, a cloud-config. The
	// record's, then a default with its SSH keys, where empty.
	UserData   string `json:"userData,omitempty" secret:"true"`
	VendorData string `json:"vendorData,omitempty" secret:"true"`
	// MetaData and NetworkConfig are made from the Hardware record where empty.
	MetaData      string `json:"metaData,omitempty"`
	NetworkConfig string `json:"networkConfig,omitempty"`
}

// Validate implements Options.
func (o *SeedPartition) Validate(c *hardware.Checker, at string) {
	o.Disk.check(c, at+".disk", false)
	checkSize(c, at+".userData", o.UserData, maxText)
	checkSize(c, at+".vendorData", o.VendorData, maxText)
	checkSize(c, at+".metaData", o.MetaData, maxShortText)
	checkSize(c, at+".networkConfig", o.NetworkConfig, maxShortText)
}
