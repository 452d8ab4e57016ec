package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/api/document"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
	"github.com/rackstrap/rackstrap/workflow"
)

// defaultConfigPath is where serve looks and init writes.
const defaultConfigPath = "/etc/rackstrap/rackstrap.yaml"

// config is the configuration file. What concerns a network is in Subnet records;
// this names interfaces and listeners only.
type config struct {
	Data       string         `json:"data"`
	Socket     string         `json:"socket"`
	Interfaces []string       `json:"interfaces"`
	DHCP       dhcpConfig     `json:"dhcp"`
	TFTP       listenConfig   `json:"tftp"`
	HTTP       httpConfig     `json:"http"`
	HTTPS      httpsConfig    `json:"https"`
	Worker     workerConfig   `json:"worker"`
	Health     listenConfig   `json:"health"`
	Images     imagesConfig   `json:"images"`
	Metadata   metadataConfig `json:"metadata"`
	Release    releaseConfig  `json:"release"`
	Log        logConfig      `json:"log"`
}

type dhcpConfig struct {
	Enabled bool `json:"enabled"`
	// AnswerRouterSolicitations spares booting iPXEs the wait for an IPv6 router; see
	// deploy/docs/adr/0004-answer-router-solicitations.md.
	AnswerRouterSolicitations bool `json:"answerRouterSolicitations"`
	// Programs are the operator's boot programs by architecture code (option 93), in
	// decimal; each is a file of the drop-in folder `boot`.
	Programs map[string]string `json:"programs"`
	// SearchOtherServers asks now and again whether somebody else gives addresses; see
	// deploy/docs/adr/0018-search-before-authority.md.
	SearchOtherServers bool `json:"searchOtherServers"`
}

type listenConfig struct {
	Listen string `json:"listen"`
}

type httpConfig struct {
	Listen string `json:"listen"`
	// BootRate is the most that one machine's iPXE is sent, in MB/s; 0 is no bound.
	BootRate int64 `json:"bootRate"`
}

type httpsConfig struct {
	// Listen may be empty: then there is no HTTPS.
	Listen string `json:"listen"`
	// Cert and Key are PEM files; we make our own where they are empty.
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

type workerConfig struct {
	Listen string `json:"listen"`
	// Consoles are for every worker whose record names none; empty: the screen and the
	// first serial line, which is another one on arm64.
	Consoles   []string `json:"consoles"`
	KernelArgs []string `json:"kernelArgs"`
}

type imagesConfig struct {
	// QuotaGiB bounds the kept image files; 0 is the disk's free space.
	QuotaGiB int64 `json:"quotaGiB"`
	// Proxy is a URL; the environment's where it is empty.
	Proxy string `json:"proxy"`
	// CA is a PEM file of CAs to trust besides the system's.
	CA string `json:"ca"`
}

type metadataConfig struct {
	// SSHKeys are authorised on every installed system, besides its record's.
	SSHKeys []string `json:"sshKeys"`
}

type releaseConfig struct {
	// StopWithin is how long after the end of a claim its machine has to be known to have
	// stopped; then it is on hold.
	StopWithin hardware.Duration `json:"stopWithin"`
}

type logConfig struct {
	Level  string `json:"level"`
	Format string `json:"format"`
}

func defaultConfig() config {
	return config{
		Data:    "/var/lib/rackstrap",
		Socket:  "/run/rackstrap/rackstrap.sock",
		DHCP:    dhcpConfig{Enabled: true, AnswerRouterSolicitations: true, SearchOtherServers: true},
		TFTP:    listenConfig{":69"},
		HTTP:    httpConfig{Listen: ":7080", BootRate: ipxe.DefaultRate / 1_000_000},
		HTTPS:   httpsConfig{Listen: ":7443"},
		Worker:  workerConfig{Listen: ":42113"},
		Health:  listenConfig{"127.0.0.1:7081"},
		Release: releaseConfig{StopWithin: hardware.Duration(workflow.StopWithin)},
		Log:     logConfig{Level: "info", Format: "text"},
	}
}

// sampleConfig is what init writes; a test reads it back and compares it with the
// defaults.
const sampleConfig = `# Rackstrap. Every key is shown with its default; unknown keys are refused.
# Networks, machines, images and templates are records, not configuration:
#   rackstrap apply -f rack.yaml

# Where records, images, keys and attempt logs are kept.
data: /var/lib/rackstrap

# REST for the command line, root's only.
socket: /run/rackstrap/rackstrap.sock

# The network interfaces of the provisioning LAN, where DHCP answers.
# Empty: the one Ethernet interface that is up and has an IPv4 address; with
# several, serve names them and stops.
interfaces: []

dhcp:
  enabled: true
  # Tell a booting iPXE, and nobody else, that there is no IPv6 router to wait for:
  # it saves 16 seconds a boot. Set it to false where iPXE itself needs IPv6.
  answerRouterSolicitations: true
  # Boot programs of your own, from the folder boot in the data directory, by the
  # architecture code that the firmware sends (DHCP option 93); each replaces ours. A
  # Hardware's spec.netboot.program goes before it. For example: {"6": "bootia32.efi"}
  programs: {}
  # Ask on each interface, at the start and every few minutes, whether another DHCP
  # server gives addresses. While one does, machines without a record get none from us,
  # and the log and ` + "`rackstrap doctor`" + ` say so.
  searchOtherServers: true

tftp:
  listen: ":69"

# Boot scripts, boot programs, kernel, initramfs and images, for machines.
http:
  listen: ":7080"
  # The most that the iPXE of one machine is sent, in MB/s; 0 is no bound. Some iPXE
  # drivers for 10 and 25 Gb/s cards hang when a large file comes faster than they take
  # it: try 10 where the kernel or the initramfs stops in the middle.
  bootRate: 100

# The API for people and programs on the network, with tokens (see: rackstrap token
# create --help), its documentation at /docs, and /metrics. "" switches it off.
https:
  listen: ":7443"
  # PEM files, read again when they change. Empty: a certificate of our own, made at
  # the first start; its fingerprint is in the log and in: rackstrap version
  cert: ""
  key: ""

worker:
  # Where the in-memory workers connect to (gRPC over TLS).
  listen: ":42113"
  # Kernel consoles of every worker whose record has no spec.netboot.consoles; the
  # last one is /dev/console. Empty: tty0 and ttyS0,115200 (arm64: ttyAMA0,115200).
  consoles: []
  # More kernel arguments for every worker; a Hardware may add its own.
  kernelArgs: []

# /metrics, /healthz and /readyz; keep this on loopback.
health:
  listen: "127.0.0.1:7081"

images:
  # Upper bound of the kept image files in GiB; 0 is no bound but the disk.
  quotaGiB: 0
  # The HTTP proxy through which images are fetched, as http://proxy.example.net:3128.
  # Empty: what HTTP_PROXY and HTTPS_PROXY say. NO_PROXY holds in both cases.
  proxy: ""
  # A PEM file with the CAs of image servers, besides those of the system. An image
  # may have its own (spec.ca).
  ca: ""

metadata:
  # Public keys (lines of authorized_keys) for the default user of every installed
  # system, besides those of its record.
  sshKeys: []

release:
  # A claim that ends says when its machine is known to have stopped: its controller says
  # that it is off, or its worker comes. After this time without either, the machine is
  # on hold. From 1m to 24h.
  stopWithin: 15m0s

log:
  level: info   # debug, info, warn or error
  format: text  # text or json
`

// loadConfig reads a configuration file over the defaults. A file that is not
// there is an error unless path is the default one.
func loadConfig(path string) (config, error) {
	c := defaultConfig()
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && path == defaultConfigPath {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("%w (write one with: rackstrap init --config %s)", err, path)
	}
	nodes, err := document.YAML(b, document.DefaultLimits())
	if err == nil && len(nodes) > 1 {
		err = fmt.Errorf("has %d documents, wanted one", len(nodes))
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	if len(nodes) == 1 { // else it is empty, or all comments
		if bad := document.Decode(nodes[0], &c); len(bad) > 0 {
			return c, fmt.Errorf("%s: %w", path, bad[0])
		}
	}
	if err := c.validate(); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	if slices.Equal(c.Worker.Consoles, []string{"tty0", "ttyS0,115200"}) {
		// What init wrote before there was arm64: the default then, and not meant to
		// take the console from machines that have another one.
		c.Worker.Consoles = nil
	}
	return c, nil
}

func (c *config) validate() error {
	for field, p := range map[string]string{"data": c.Data, "socket": c.Socket} {
		if !filepath.IsAbs(p) {
			return fmt.Errorf("%s: %q is not an absolute path", field, p)
		}
	}
	for field, l := range map[string]string{"tftp.listen": c.TFTP.Listen, "http.listen": c.HTTP.Listen, "worker.listen": c.Worker.Listen, "health.listen": c.Health.Listen} {
		if _, err := listenPort(l); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	if c.HTTP.BootRate < 0 || c.HTTP.BootRate > 2000 {
		return fmt.Errorf("http.bootRate: %d is not a rate in MB/s (1 to 2000, or 0 for no bound)", c.HTTP.BootRate)
	}
	if c.HTTPS.Listen != "" {
		if _, err := listenPort(c.HTTPS.Listen); err != nil {
			return fmt.Errorf("https.listen: %w (or \"\" for none)", err)
		}
	}
	if (c.HTTPS.Cert == "") != (c.HTTPS.Key == "") {
		return fmt.Errorf("https.cert and https.key: one of the two is missing (give both PEM files, or neither)")
	}
	for i, a := range c.Worker.KernelArgs {
		if err := hardware.ValidKernelArg(a); err != nil {
			return fmt.Errorf("worker.kernelArgs[%d]: %w", i, err)
		}
	}
	for i, t := range c.Worker.Consoles {
		if err := hardware.ValidConsole(t); err != nil {
			return fmt.Errorf("worker.consoles[%d]: %w", i, err)
		}
	}
	if len(c.Metadata.SSHKeys) > hardware.MaxSSHKeys {
		return fmt.Errorf("metadata.sshKeys: has %d entries, the limit is %d", len(c.Metadata.SSHKeys), hardware.MaxSSHKeys)
	}
	for i, k := range c.Metadata.SSHKeys {
		if err := hardware.ValidSSHKey(k); err != nil {
			return fmt.Errorf("metadata.sshKeys[%d]: %w", i, err)
		}
	}
	if _, err := c.DHCP.programs(); err != nil {
		return err
	}
	if c.Images.QuotaGiB < 0 {
		return fmt.Errorf("images.quotaGiB: %d is negative", c.Images.QuotaGiB)
	}
	if c.Images.Proxy != "" {
		if err := validProxy(c.Images.Proxy); err != nil {
			return err
		}
	}
	if c.Images.CA != "" && !filepath.IsAbs(c.Images.CA) {
		return fmt.Errorf("images.ca: %q is not an absolute path", c.Images.CA)
	}
	if d := time.Duration(c.Release.StopWithin); d < time.Minute || d > 24*time.Hour {
		return fmt.Errorf("release.stopWithin: %v is not a time to wait for a machine to stop (1m to 24h)", d)
	}
	if _, err := logLevel(c.Log.Level); err != nil {
		return err
	}
	if c.Log.Format != "text" && c.Log.Format != "json" {
		return fmt.Errorf("log.format: %q is not known (text or json)", c.Log.Format)
	}
	return nil
}

// programs are the boot programs by code.
func (c *dhcpConfig) programs() (map[uint16]string, error) {
	out := map[uint16]string{}
	for key, name := range c.Programs {
		code, err := strconv.ParseUint(key, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("dhcp.programs: %.20q is not an architecture code (write the number of option 93, as in {\"6\": \"bootia32.efi\"})", key)
		}
		if other, twice := out[uint16(code)]; twice {
			return nil, fmt.Errorf("dhcp.programs: architecture %d has both %s and %s (leave one of them)", code, other, name)
		}
		if err := hardware.ValidProgram(name); err != nil {
			return nil, fmt.Errorf("dhcp.programs.%d: %w", code, err)
		}
		out[uint16(code)] = name
	}
	return out, nil
}

// listenAddr reads a listen address such as :7080 or 10.0.0.1:7080.
func listenAddr(s string) (netip.AddrPort, error) {
	full := s
	if strings.HasPrefix(s, ":") {
		full = "0.0.0.0" + s
	}
	ap, err := netip.ParseAddrPort(full)
	if err != nil || ap.Port() == 0 {
		return ap, fmt.Errorf("%q is not a listen address (write it as \":7080\" or \"10.0.0.1:7080\")", s)
	}
	return ap, nil
}

// listenPort is the port of a listen address.
func listenPort(s string) (uint16, error) {
	ap, err := listenAddr(s)
	return ap.Port(), err
}

// shutdownGrace is how long a clean stop may take.
const shutdownGrace = 10 * time.Second
