package machine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rackstrap/rackstrap/api"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// bootstrap is what the bootstrap provider made. It never leaves the process but to the
// appliance.
type bootstrap struct {
	data   []byte
	format string
}

// readBootstrap takes the data out of a bootstrap Secret; why says that it cannot be
// used, without a word of it.
func readBootstrap(name string, secret map[string][]byte, fallback string) (b bootstrap, why string) {
	b = bootstrap{data: secret["value"], format: string(secret["format"])}
	if b.format == "" {
		b.format = fallback
	}
	if b.format == "" {
		b.format = "cloud-config"
	}
	switch {
	case len(b.data) == 0:
		return b, fmt.Sprintf("The bootstrap Secret %s has no value", name)
	case !utf8.Valid(b.data):
		return b, fmt.Sprintf("The bootstrap Secret %s has a value that is not UTF-8 text", name)
	case !slices.Contains([]string{"cloud-config", "ignition", "talos"}, b.format):
		return b, fmt.Sprintf("The bootstrap Secret %s has the format %.40q; cloud-config, ignition and talos are known", name, b.format)
	}
	return b, ""
}

// provision is the request for the install. why says what is wrong with the spec.
func provision(o *infrav1.RackstrapMachine, i *image, b bootstrap, network string) (out api.Provision, why string) {
	out = api.Provision{
		Image: i.name, Checksum: i.checksum, OS: i.os, OSVersion: i.osVersion, KubernetesVersion: i.kubernetesVersion,
		Format: b.format, UserData: string(b.data), Network: network, Disk: o.Spec.Disk, Template: o.Spec.Template,
		WaitForPhoneHome: o.Spec.WaitForPhoneHome != nil && *o.Spec.WaitForPhoneHome,
		Claim:            o.Spec.ClaimID, Name: workflowName(o.Spec.ClaimID),
	}
	for _, name := range slices.Sorted(maps.Keys(o.Spec.Parameters)) {
		if slices.Contains(own(), name) {
			return out, fmt.Sprintf("spec.parameters has %s, which the provider gives; leave it out", name)
		}
		var v any
		if err := json.Unmarshal(o.Spec.Parameters[name].Raw, &v); err != nil {
			return out, fmt.Sprintf("spec.parameters has %s, which is not JSON", name)
		}
		if out.Params == nil {
			out.Params = map[string]any{}
		}
		out.Params[name] = v
	}
	meta := strings.Builder{}
	for _, k := range slices.Sorted(maps.Keys(o.Spec.MetaData)) {
		if slices.Contains([]string{"provider-id", "instance-id"}, strings.ReplaceAll(k, "_", "-")) {
			return out, fmt.Sprintf("spec.metaData has %s, which says which machine it is; leave it out", k)
		}
		key, errKey := json.Marshal(k)
		value, errValue := json.Marshal(o.Spec.MetaData[k])
		if errKey != nil || errValue != nil {
			return out, fmt.Sprintf("spec.metaData has %.40q, which is no text", k)
		}
		fmt.Fprintf(&meta, "%s: %s\n", key, value) // JSON is YAML
	}
	out.MetaData = meta.String()
	return out, ""
}

// own are the parameters that the fields of the spec and the bootstrap data make.
func own() []string {
	return []string{"image", "checksum", "disk", "userData", "metaData", "network"}
}
