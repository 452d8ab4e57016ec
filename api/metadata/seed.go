package metadata

import (
	"errors"

	"github.com/rackstrap/rackstrap/hardware"
)

// The names of the files of a NoCloud seed.
const (
	FileMetaData      = "meta-data"
	FileUserData      = "user-data"
	FileVendorData    = "vendor-data"
	FileNetworkConfig = "network-config"
)

// What else is served below the token of an install.
const (
	FileIgnition  = "ignition"   // the Ignition configuration
	FileTalos     = "talos"      // the Talos machine configuration
	FilePhoneHome = "phone-home" // no file: asking for it marks the system up
)

// FileNames lists the files of a seed, sorted.
func FileNames() []string {
	return []string{FileMetaData, FileNetworkConfig, FileUserData, FileVendorData}
}

// Files are the files of one seed by name. They may hold secrets.
type Files map[string][]byte

// Input is what an install adds to the record.
type Input struct {
	// InstanceID is new for each install: cloud-init does its first-boot work once
	// per instance id.
	InstanceID string
	// UserData is handed on byte by byte; the record's, then a default, where empty.
	UserData string
	// VendorData is handed on byte by byte.
	VendorData string
	// MetaData is a YAML mapping; what it lacks of ours is put before it.
	MetaData string
	// Keys are the installation's SSH keys; they are added to the record's.
	Keys []string
	// ProviderID is rackstrap://<installation>/<hardware uid>/<claim id>; empty where
	// nobody has claimed the machine.
	ProviderID string
	// PhoneHome is the URL that marks the system up. The default user-data has it;
	// with another user-data the vendor-data, where none is given. It is in the
	// meta-data in each case.
	PhoneHome string
}

// Seed makes the files of a NoCloud seed for one install of h. All of
// [FileNames] are there; vendor-data may be empty. It errs without an instance
// id, and for meta-data that is no YAML mapping.
func Seed(h *hardware.Hardware, subnets []*hardware.Subnet, in Input) (Files, error) {
	if in.InstanceID == "" {
		return nil, errors.New("instance id: is empty (every install needs a new one)")
	}
	meta, err := metaData(h, in)
	if err != nil {
		return nil, err
	}
	user, err := userData(h, subnets, in)
	if err != nil {
		return nil, err
	}
	vendor, err := vendorData(h, in)
	if err != nil {
		return nil, err
	}
	network, err := NetworkConfig(h, subnets, nil)
	if err != nil {
		return nil, err
	}
	return Files{
		FileMetaData: meta, FileUserData: user, FileVendorData: vendor, FileNetworkConfig: network,
	}, nil
}
