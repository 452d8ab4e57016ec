package convert

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is one file of manifests. Its name is for the notes.
type File struct {
	Name string
	Data []byte
}

// Options of a conversion.
type Options struct {
	// Secret is the name of the Secret with the appliance's url and token that the
	// RackstrapClusters are given.
	Secret string
}

// Note says what a person has to know of a conversion, or to do.
type Note struct {
	File   string
	Object string // Kind NAMESPACE/NAME
	Field  string // spec.template.spec.dataTemplate; empty for the whole object
	// Lost: the output does not say what this part of the input said.
	Lost bool
	Text string
}

func (n Note) String() string {
	word := "note"
	if n.Lost {
		word = "lost"
	}
	at := n.Object
	if n.Field != "" {
		at += ": " + n.Field
	}
	return fmt.Sprintf("%s: %s: %s: %s", word, n.File, at, n.Text)
}

// Lost are the notes of what the output does not say.
func Lost(notes []Note) []Note {
	return slices.DeleteFunc(slices.Clone(notes), func(n Note) bool { return !n.Lost })
}

// conversion is one run over all files: what a machine template says may have its other
// half in a cluster of another file.
type conversion struct {
	Options
	notes    []Note
	docs     []*document
	clusters map[key]lookup // of TinkerbellClusters, as they were read
}

// lookup is what a TinkerbellCluster says for all its machines.
type lookup struct{ distro, version string }

type key struct{ namespace, name string }

// Convert converts all objects of the files, in their order. An error is YAML that
// cannot be read, or an object that is not of the shape of its kind.
func Convert(files []File, o Options) ([]byte, []Note, error) {
	c := &conversion{Options: o, clusters: map[key]lookup{}}
	for _, f := range files {
		docs, err := read(f)
		if err != nil {
			return nil, nil, err
		}
		c.docs = append(c.docs, docs...)
	}
	for _, d := range c.docs {
		if d.group() == infraGroup && d.kind() == "TinkerbellCluster" {
			s := &fields{&conversion{}, d, "spec", maps.Clone(object(d.value, "spec"))}
			c.clusters[d.key()] = lookup{s.string("imageLookupOSDistro"), s.string("imageLookupOSVersion")}
		}
	}
	var out bytes.Buffer
	for _, d := range c.docs {
		text, err := c.convert(d)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w%s", d.file, d.object(), err, d.variables())
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		if out.Len() > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), c.notes, nil
}

const infraGroup = "infrastructure.cluster.x-k8s.io"

// converters of objects, by group and kind. What is not here passes through.
func converters() map[string]func(*conversion, *document) (any, error) {
	return map[string]func(*conversion, *document) (any, error){
		infraGroup + "/TinkerbellCluster":         (*conversion).tinkerbellCluster,
		infraGroup + "/TinkerbellMachine":         (*conversion).tinkerbellMachine,
		infraGroup + "/TinkerbellMachineTemplate": (*conversion).tinkerbellMachineTemplate,
		infraGroup + "/Metal3Cluster":             (*conversion).metal3Cluster,
		infraGroup + "/Metal3ClusterTemplate":     (*conversion).metal3ClusterTemplate,
		infraGroup + "/Metal3Machine":             (*conversion).metal3Machine,
		infraGroup + "/Metal3MachineTemplate":     (*conversion).metal3MachineTemplate,
		infraGroup + "/Metal3Remediation":         (*conversion).metal3Remediation,
		infraGroup + "/Metal3RemediationTemplate": (*conversion).metal3RemediationTemplate,
		infraGroup + "/TinkerbellClusterTemplate": leftOut("write a RackstrapClusterTemplate (deploy/capi/templates/clusterclass-rackstrap.yaml has one)"),
		infraGroup + "/Metal3DataTemplate":        leftOut("meta-data are spec.template.spec.metaData of the RackstrapMachineTemplate, addresses from pools its network.addresses, other network settings its network.config or the Hardware's record"),
		infraGroup + "/Metal3Data":                leftOut("it was rendered from a Metal3DataTemplate"),
		infraGroup + "/Metal3DataClaim":           leftOut("it belongs to a Metal3DataTemplate"),
		"ipam.metal3.io/IPPool":                   leftOut("use a pool of an IPAM provider of the Cluster API (InClusterIPPool), and name it in network.addresses of the RackstrapMachineTemplate"),
		"ipam.metal3.io/IPClaim":                  leftOut("the provider makes IPAddressClaims itself"),
		"ipam.metal3.io/IPAddress":                leftOut("the IPAM provider makes IPAddresses itself"),
		"metal3.io/BareMetalHost":                 leftOut(applianceRecord),
		"metal3.io/HardwareData":                  leftOut("the appliance finds out what is in a machine itself"),
		"metal3.io/HostFirmwareSettings":          leftOut("firmware settings are not managed"),
		"tinkerbell.org/Hardware":                 leftOut(applianceRecord),
		"tinkerbell.org/Template":                 leftOut("write a Template of the appliance (deploy/docs/actions.md)"),
		"tinkerbell.org/Workflow":                 leftOut("the provider starts the workflows of the appliance itself"),
		"bmc.tinkerbell.org/Machine":              leftOut("power control is spec.power of the Hardware's record (deploy/docs/power.md)"),
		"bmc.tinkerbell.org/Job":                  leftOut("the appliance switches machines itself"),
		"bmc.tinkerbell.org/Task":                 leftOut("the appliance switches machines itself"),
		infraGroup + "/Metal3MachinePool":         leftOut("there is no MachinePool; use a MachineDeployment"),
	}
}

const applianceRecord = "it is a record of the appliance, not of the management cluster: write a Hardware with its MAC addresses and labels (deploy/examples/rack.yaml), and rackstrap apply -f it"

// leftOut is for objects that have no equivalent as a whole.
func leftOut(instead string) func(*conversion, *document) (any, error) {
	return func(c *conversion, d *document) (any, error) {
		c.notes = append(c.notes, Note{File: d.file, Object: d.object(), Lost: true, Text: "is left out: " + instead})
		return omitted("# " + d.object() + " is left out: " + instead + "\n"), nil
	}
}

// omitted is a comment in the place of an object.
type omitted string

// convert is one object as text.
func (c *conversion) convert(d *document) ([]byte, error) {
	if d.value == nil {
		return d.text, nil
	}
	renamed := c.rename(d)
	f := converters()[d.group()+"/"+d.kind()]
	if f == nil {
		up, ok := upgrades()[d.group()+"/"+d.kind()]
		switch {
		case ok && slices.Contains([]string{"v1alpha3", "v1alpha4", "v1beta1"}, d.version()):
			f = func(c *conversion, d *document) (any, error) { return c.upgrade(d, up) }
		case renamed || d.fromList:
			return d.write(d.value)
		default:
			return d.text, nil
		}
	}
	out, err := f(c, d)
	if err != nil {
		return nil, err
	}
	if s, ok := out.(omitted); ok {
		return []byte(s), nil
	}
	value, err := toValue(out)
	if err != nil {
		return nil, err
	}
	return d.write(value)
}

// note adds a note on a field of d.
func (c *conversion) note(d *document, lost bool, field, format string, args ...any) {
	c.notes = append(c.notes, Note{File: d.file, Object: d.object(), Field: field, Lost: lost, Text: fmt.Sprintf(format, args...)})
}

// ordered are the keys of m as source has them, then the others by name.
func ordered(m map[string]any, source *yaml.Node) []string {
	place := map[string]int{}
	if source != nil && source.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(source.Content); i += 2 {
			place[source.Content[i].Value] = i + 1
		}
	}
	first := map[string]int{"apiVersion": -4, "kind": -3, "metadata": -2, "spec": -1}
	at := func(k string) int {
		if p := place[k]; p > 0 {
			return p
		}
		if p, ok := first[k]; ok {
			return p
		}
		return 1 << 30
	}
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(at(a), at(b)), strings.Compare(a, b))
	})
}
