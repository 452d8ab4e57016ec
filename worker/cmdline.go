package worker

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// Params are what the boot script wrote onto the kernel command line.
type Params struct {
	// Server is the worker protocol's address; HTTP the base for images that the
	// appliance keeps.
	Server netip.AddrPort
	HTTP   string
	// Token is the boot token. It is printed nowhere.
	Token string
	// CA is the sha256 of the installation's CA certificate (DER).
	CA [32]byte
	// MAC is the card that the machine booted from; zero where the script does not say.
	MAC hardware.MAC
}

// String leaves the token out.
func (p Params) String() string {
	return fmt.Sprintf("server %v, card %v, CA %x…", p.Server, p.MAC, p.CA[:4])
}

const paramPrefix = "rackstrap."

// ParseCommandLine reads the rackstrap.* words of a kernel command line; a later
// word wins, as everywhere in the kernel. Its error lists everything that is
// missing or malformed, without the values of secrets.
func ParseCommandLine(line string) (Params, error) {
	given := map[string]string{}
	for _, w := range strings.Fields(line) {
		if k, v, ok := strings.Cut(w, "="); ok && strings.HasPrefix(k, paramPrefix) {
			given[strings.TrimPrefix(k, paramPrefix)] = v
		}
	}
	var p Params
	var wrong []string
	read := func(name string, required bool, parse func(string) error) {
		v := given[name]
		switch {
		case v == "" && required:
			wrong = append(wrong, paramPrefix+name+" is missing")
		case v != "":
			if err := parse(v); err != nil {
				wrong = append(wrong, paramPrefix+name+" "+err.Error())
			}
		}
	}
	read("server", true, func(v string) (err error) {
		if p.Server, err = netip.ParseAddrPort(v); err != nil {
			err = fmt.Errorf("%.60q is not an address with a port (10.0.0.1:42113)", v)
		}
		return err
	})
	read("token", true, func(v string) error { p.Token = v; return nil })
	read("ca", true, func(v string) error {
		b, err := hex.DecodeString(v)
		if err != nil || len(b) != len(p.CA) {
			return fmt.Errorf("has %d characters and is not a sha256 in hex (64 characters)", len(v))
		}
		copy(p.CA[:], b)
		return nil
	})
	read("http", false, func(v string) error {
		u, err := url.Parse(v)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return fmt.Errorf("%.60q is not an http URL (http://10.0.0.1:7080)", v)
		}
		p.HTTP = strings.TrimSuffix(v, "/")
		return nil
	})
	read("mac", false, func(v string) (err error) {
		p.MAC, err = hardware.ParseMAC(v)
		return err
	})
	if len(wrong) > 0 {
		return Params{}, fmt.Errorf("kernel command line: %s (the appliance's boot script sets them: boot over the network from it)", strings.Join(wrong, "; "))
	}
	return p, nil
}
