package workflow

import "time"

// About is what people need to know of a kind before they write an action of it.
type About struct {
	// Does is what it does, in a sentence; the guide of the actions begins with it.
	Does string
	// Options is a zero value of its options.
	Options Options
	// Timeout of one attempt (0 is none) and Retries, where the template names none.
	Timeout time.Duration
	Retries int
	// WritesDisk: it leaves something on a disk. Destroys: it overwrites whole disks.
	WritesDisk, Destroys bool
	// Last: nothing can come after it.
	Last bool
}

// About is what people need to know of a kind; the zero value where it is not known.
func (k Kind) About() About {
	info, ok := kinds()[k]
	if !ok {
		return About{}
	}
	return About{
		Does: info.does, Options: info.options(), Timeout: info.timeout, Retries: info.retries,
		WritesDisk: k.writesDisk(), Destroys: k.destroys(), Last: k.last(),
	}
}

// OptionAbout is what people need to know of one option.
type OptionAbout struct {
	Text string
	// OneOf are all values that it may have besides none; empty: other ones too.
	OneOf []string
}

// OptionAbout is what people need to know of an option, by its name in `with:`.
func (k Kind) OptionAbout(name string) OptionAbout {
	if a, ok := optionsAbout()[k][name]; ok {
		return a
	}
	return map[string]OptionAbout{
		"disk":       {Text: "Which disk: smallest or largest of the fixed ones, a path (/dev/nvme0n1) or serial=…; may be left out where there is one only."},
		"partition":  {Text: "Which partition: root (the one with /etc/os-release; also where it is left out), a number, label=… (its name in the GPT) or fs=… (the label of its file system)."},
		"userData":   {Text: "The user-data, at most 256 KiB; the record's, then a default with its SSH keys, where empty."},
		"vendorData": {Text: "The vendor-data, at most 256 KiB."},
		"metaData":   {Text: "More keys of the meta-data as `key: value` lines, at most 64 KiB."},
	}[name]
}

// optionsAbout are the options that mean something of their own in a kind.
func optionsAbout() map[Kind]map[string]OptionAbout {
	return map[Kind]map[string]OptionAbout{
		KindDiskWipe: {
			"disk": {Text: "Which disk: smallest or largest of the fixed ones, all of them (all), a path (/dev/nvme0n1) or serial=…; may be left out where there is one only."},
			"mode": {
				Text:  "How: quick (tables and signatures, and a discard; the default), zero (every byte overwritten, samples read back) or verified (discarded or overwritten, and read back; for machines that go to somebody else).",
				OneOf: []string{WipeQuick, WipeZero, WipeVerified},
			},
		},
		KindImageWrite: {
			"image":    {Text: "The name of an image (rackstrap image list), or an http(s) URL."},
			"checksum": {Text: "What the bytes must have as they travel: sha256:HEX, sha512:HEX or, protecting from accidents only, md5:HEX. A kept image has its own."},
			"format":   {Text: "The form of the file; auto, the default, goes by its content.", OneOf: []string{"auto", "raw", "gz", "xz", "zst", "bz2"}},
			"ca":       {Text: "The certificate to trust for https, in PEM, at most 64 KiB: the worker carries none."},
			"insecure": {Text: "Allows https without ca; needs a checksum, and not MD5."},
		},
		KindFileWrite: {
			"path":    {Text: "The absolute path of the file in the installed system."},
			"content": {Text: "What is in the file, at most 256 KiB."},
			"mode":    {Text: "Its permissions as octal text; 0644 where empty."},
			"uid":     {Text: "The number of the user that it belongs to."},
			"gid":     {Text: "The number of the group that it belongs to."},
		},
		KindNetworkConfig: {
			"renderer": {Text: "Who reads it: auto (NoCloud where the image has cloud-init, else netplan, else networkd; the default), nocloud, netplan or networkd.", OneOf: []string{"auto", "nocloud", "netplan", "networkd"}},
			"config":   {Text: "A cloud-init network-config version 2 in YAML, at most 64 KiB; made from the record where empty."},
		},
		KindCloudInit: {
			"serve": {Text: "Keeps user-data and vendor-data off the disk: the installed system fetches them at its first start, from a URL that is good for a day."},
		},
		KindIgnition: {
			"config": {Text: "The Ignition config in JSON, byte by byte, at most 256 KiB; the record's user-data where empty. Butane is not Ignition: butane --strict config.bu"},
		},
		KindSeedPartition: {
			"networkConfig": {Text: "A cloud-init network-config version 2 in YAML, at most 64 KiB; made from the record where empty."},
		},
	}
}

// Variable is a ${name} that every template may use.
type Variable struct {
	Name string `json:"name"`
	// Means is what it stands for.
	Means string `json:"means"`
}

// Variables are all of those, in the order in which people think of them.
func Variables() []Variable {
	return []Variable{
		{"hardware.name", "the name of the machine's record"},
		{"hardware.hostname", "the host name of the installed system: the record's, else the machine's name"},
		{"hardware.uid", "the id of the machine's record, which it keeps as long as it exists"},
		{"hardware.arch", "the architecture of the machine: amd64 or arm64"},
		{"hardware.mac", "the MAC of the first interface of the record; empty where there is none"},
		{"hardware.address", "the first address of that interface, without its prefix length; empty where there is none"},
	}
}
