package action

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rackstrap/rackstrap/worker/netconfig"
	"github.com/rackstrap/rackstrap/workflow"
)

// networkConfig writes the network configuration with one renderer.
func networkConfig(ctx context.Context, env Env, o workflow.NetworkConfig) (Result, error) {
	if _, err := netconfig.Parse(o.Config); err != nil {
		return Result{}, permanentf("config: %w", err)
	}
	warnMACs(env, o.Config)
	return withTarget(ctx, env, o.Disk, o.Partition, func(t *target) (Result, error) {
		renderer, err := chooseRenderer(t.tree, o.Renderer)
		if err != nil {
			return Result{}, err
		}
		out := Result{Message: fmt.Sprintf("wrote the network configuration for %s on %s", renderer, t.part.path)}
		env.Log.Info("network configuration", "renderer", renderer, "asked_for", orDefault(o.Renderer, "auto"), "partition", t.part.path)
		return out, render(env, t.tree, renderer, o.Config)
	})
}

// render writes the document for one renderer.
func render(env Env, t *tree, renderer, config string) error {
	doc, err := netconfig.Parse(config)
	if err != nil {
		return permanentf("config: %w", err)
	}
	switch renderer {
	case "nocloud":
		return writeNoCloudNetwork(env, t, config)
	case "netplan":
		return writeNetplan(t, doc)
	}
	return writeNetworkd(t, doc)
}

// chooseRenderer picks what the installed system brings up its network with.
func chooseRenderer(t *tree, asked string) (string, error) {
	if asked != "" && asked != "auto" {
		return asked, nil
	}
	switch {
	case hasCloudInit(t):
		return "nocloud", nil
	case t.exists("etc/netplan"), t.exists("usr/sbin/netplan"):
		return "netplan", nil
	case t.exists("usr/lib/systemd/systemd-networkd"), t.exists("lib/systemd/systemd-networkd"):
		return "networkd", nil
	}
	return "", permanentf("the system has neither cloud-init nor netplan nor systemd-networkd (write its configuration with file.write)")
}

// warnMACs says when the configuration is for none of the machine's NICs: the
// installed system would be there and never be reached.
func warnMACs(env Env, config string) {
	for _, mac := range env.MACs {
		if strings.Contains(strings.ToLower(config), strings.ToLower(mac)) {
			return
		}
	}
	if len(env.MACs) > 0 && strings.Contains(config, "macaddress") {
		env.Log.Warn("the network configuration names none of this machine's NICs", "macs", strings.Join(env.MACs, " "))
	}
}

// writeNoCloudNetwork puts the document into the seed, from which cloud-init
// configures the network at the first boot of the instance, and only then.
func writeNoCloudNetwork(env Env, t *tree, config string) error {
	if err := unpinNetwork(env, t); err != nil {
		return err
	}
	if err := t.write(seedFile("network-config", config)); err != nil {
		return err
	}
	if t.exists(seedDir + "/meta-data") {
		return nil
	}
	// Without these two there is no seed to cloud-init. A cloudinit action
	// replaces them.
	sum := sha256.Sum256([]byte(config))
	meta := "instance-id: rackstrap-" + hex.EncodeToString(sum[:8]) + "\n"
	if err := t.write(seedFile("meta-data", meta)); err != nil {
		return err
	}
	if err := t.write(seedFile("user-data", "#cloud-config\n")); err != nil {
		return err
	}
	return t.write(file{name: pinFile, content: []byte(pin), mode: 0o644})
}

// unpinNetwork removes what installers leave in an image to keep cloud-init
// from configuring the network: it would win over every seed.
func unpinNetwork(env Env, t *tree) error {
	const dir = "etc/cloud/cloud.cfg.d"
	names, err := t.list(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".cfg") {
			continue
		}
		b, err := t.read(dir + "/" + name)
		if err != nil {
			return err
		}
		cfg, err := netconfig.Mapping(string(b))
		if errors.Is(err, netconfig.ErrTooMuch) {
			return permanentf("/%s/%s of the image: %w (remove it from the image, or set renderer: netplan)", dir, name, err)
		}
		if err != nil {
			continue // cloud-init ignores it too
		}
		if netconfig.Value(cfg, "network") == nil {
			continue
		}
		if len(cfg.Content) > 2 {
			return permanentf("/%s/%s of the image sets network among other things, which wins over what would be written (remove it from the image, or set renderer: netplan)", dir, name)
		}
		env.Log.Warn("removing a file of the image that pins its network", "path", "/"+dir+"/"+name)
		if err := t.remove(dir + "/" + name); err != nil {
			return err
		}
	}
	return nil
}

// writeNetplan puts the document where netplan reads it: network-config version
// 2 is netplan's format. It sorts after what images bring along.
func writeNetplan(t *tree, doc *yaml.Node) error {
	b, err := renderNetplan(doc)
	if err != nil {
		return permanent(err)
	}
	// Netplan complains about files that others can read.
	return t.write(file{name: "etc/netplan/99-rackstrap.yaml", content: b, mode: 0o600})
}

func renderNetplan(doc *yaml.Node) ([]byte, error) {
	doc, err := flat(doc)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return encodeYAML(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "network"}, doc}})
}
