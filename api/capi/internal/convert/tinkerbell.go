package convert

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// The defaults of the other providers' manifests.
const (
	captDistro = "ubuntu"
	captFormat = "{{.BaseRegistry}}/{{.OSDistro}}-{{.OSVersion}}:{{.KubernetesVersion}}.gz"
)

const givenByAppliance = "machines are installed by workflows of the appliance: write a Template there (deploy/docs/actions.md) and name it in template of the machine's spec"

// spec is the part of d that its kind is about, after what every object has.
func (c *conversion) spec(d *document) (meta map[string]any, spec *fields) {
	c.metadata(d)
	root := &fields{c, d, "", d.value}
	meta, _ = d.value["metadata"].(map[string]any)
	return meta, root.at("spec")
}

// made is one of our objects, with d's name.
func (c *conversion) made(d *document, kind string, meta map[string]any, spec any) (any, error) {
	s, err := toValue(spec)
	if err != nil {
		return nil, err
	}
	if meta == nil {
		meta = map[string]any{}
	}
	return map[string]any{"apiVersion": infraGroup + "/v1beta1", "kind": kind, "metadata": meta, "spec": s}, nil
}

func (c *conversion) appliance(d *document) infrav1.ApplianceReference {
	c.note(d, false, "spec.appliance.secretRef.name", "make the Secret %s in its namespace: the appliance's url, token, ownerPrefix and ca.crt or fingerprint (deploy/docs/capi.md)", c.Secret)
	return infrav1.ApplianceReference{SecretRef: infrav1.LocalReference{Name: c.Secret}}
}

func (f *fields) endpoint() infrav1.APIEndpoint {
	e := f.at("controlPlaneEndpoint")
	out := infrav1.APIEndpoint{Host: e.string("host")}
	out.Port, _ = e.int("port")
	e.rest()
	return out
}

func (c *conversion) tinkerbellCluster(d *document) (any, error) {
	meta, s := c.spec(d)
	out := infrav1.RackstrapClusterSpec{ControlPlaneEndpoint: s.endpoint(), Appliance: c.appliance(d)}
	// the distribution and its version go into the machine templates
	for _, name := range []string{"imageLookupOSDistro", "imageLookupOSVersion"} {
		s.string(name)
	}
	if format := s.string("imageLookupFormat"); format != "" && format != captFormat {
		c.note(d, true, "spec.imageLookupFormat", "%s: an image is looked up in the appliance by its OS and Kubernetes version; where names follow a rule give it in image.lookup.format of the machine templates, as {os}-{version}-kube-{kubernetesVersion}", format)
	}
	s.lost("imageLookupBaseRegistry", "images are kept by the appliance: rackstrap image add NAME URL --os OS --os-version VERSION --kubernetes-version VERSION")
	s.lost("templateOverride", givenByAppliance)
	s.lost("templateOverrideRef", givenByAppliance)
	s.lost("tinkerbellEndpoint", "the appliance is named by the Secret")
	s.rest()
	return c.made(d, "RackstrapCluster", meta, out)
}

func (c *conversion) tinkerbellMachineTemplate(d *document) (any, error) {
	meta, s := c.spec(d)
	t := s.at("template")
	s.rest()
	var out infrav1.RackstrapMachineTemplateSpec
	decode(t, "metadata", &out.Template.ObjectMeta)
	out.Template.Spec = c.tinkerbell(d, t.at("spec"), true)
	t.rest()
	return c.made(d, "RackstrapMachineTemplate", meta, out)
}

func (c *conversion) tinkerbellMachine(d *document) (any, error) {
	meta, s := c.spec(d)
	return c.made(d, "RackstrapMachine", meta, c.tinkerbell(d, s, false))
}

// tinkerbell is the spec of a machine.
func (c *conversion) tinkerbell(d *document, s *fields, template bool) infrav1.RackstrapMachineSpec {
	var out infrav1.RackstrapMachineSpec
	if template {
		s.lost("providerID", "is left out: the provider gives each machine its own, rackstrap://…")
	} else {
		s.written("providerID", "is left out: the provider gives it")
	}
	out.HardwareName = s.string("hardwareName")
	s.written("hardwareID", "is left out: the provider claims a Hardware")
	c.tinkerbellSelector(d, s.at("hardwareSelector"), &out)
	c.tinkerbellAffinity(d, s.at("hardwareAffinity"), &out)
	out.Image = c.tinkerbellImage(d, s)
	s.lost("userDataSecret", "the data comes from the bootstrap provider: put what is in the Secret into the KubeadmConfigTemplate (files, users, preKubeadmCommands)")
	s.lost("templateOverride", givenByAppliance)
	s.lost("templateOverrideRef", givenByAppliance)
	b := s.at("bootOptions")
	if mode := b.string("bootMode"); mode != "" && mode != "netboot" && mode != "none" {
		c.note(d, true, b.where("bootMode"), "%s: machines boot from the network, be it PXE or UEFI HTTP boot (deploy/docs/netboot.md)", mode)
	}
	b.lost("isoURL", "machines boot from the network, be it PXE or UEFI HTTP boot (deploy/docs/netboot.md)")
	b.lost("custombootConfig", "the appliance switches machines by spec.power of the Hardware's record (deploy/docs/power.md)")
	b.rest()
	s.rest()
	return out
}

// tinkerbellSelector reads the selector of older guides: manufacturer and plan, as
// labels of the Hardware.
func (c *conversion) tinkerbellSelector(d *document, s *fields, out *infrav1.RackstrapMachineSpec) {
	if len(s.m) == 0 {
		return
	}
	out.HardwareSelector = &metav1.LabelSelector{}
	decode(s, "matchLabels", &out.HardwareSelector.MatchLabels)
	decode(s, "matchExpressions", &out.HardwareSelector.MatchExpressions)
	for _, name := range []string{"manufacturer", "plan"} {
		if v := s.string(name); v != "" {
			if out.HardwareSelector.MatchLabels == nil {
				out.HardwareSelector.MatchLabels = map[string]string{}
			}
			out.HardwareSelector.MatchLabels[name] = v
			c.note(d, false, s.where(name), "is a label: give the Hardware %s=%s", name, v)
		}
	}
	s.rest()
}

func (c *conversion) tinkerbellAffinity(d *document, s *fields, out *infrav1.RackstrapMachineSpec) {
	var terms []metav1.LabelSelector
	for _, t := range s.list("required") {
		var sel metav1.LabelSelector
		if decode(t, "labelSelector", &sel) {
			terms = append(terms, sel)
		}
		t.rest()
	}
	switch one, ok := union(terms); {
	case ok:
		out.HardwareSelector = merged(out.HardwareSelector, one)
	case len(terms) > 0:
		out.HardwareSelector = merged(out.HardwareSelector, terms[0])
		c.note(d, true, s.where("required"), "one of several selectors will do, which a Hardware selector cannot say: the first is taken; give the Hardware of all of them a common label, or make a machine template for each")
	}
	for i, p := range s.list("preferred") {
		weight, _ := p.int("weight")
		term := p.at("hardwareAffinityTerm")
		var sel metav1.LabelSelector
		ok := decode(term, "labelSelector", &sel)
		term.rest()
		p.rest()
		switch {
		case !ok || weight == 0:
			c.note(d, true, p.path, "prefers nothing, and is left out")
		case i >= 14:
			c.note(d, true, p.path, "is left out: there may be 14 of them")
		default:
			out.Preferred = append(out.Preferred, infrav1.PreferredHardware{Weight: max(-100, min(100, weight)), HardwareSelector: sel})
		}
	}
	s.rest()
}

// union is one selector for hardware that any of the terms selects, where one can say
// it: there is one term, or all of them want one label to have some value.
func union(terms []metav1.LabelSelector) (metav1.LabelSelector, bool) {
	if len(terms) == 1 {
		return terms[0], true
	}
	name, values := "", []string{}
	for _, t := range terms {
		if len(t.MatchLabels) != 1 || len(t.MatchExpressions) > 0 {
			return metav1.LabelSelector{}, false
		}
		for k, v := range t.MatchLabels {
			if name != "" && name != k {
				return metav1.LabelSelector{}, false
			}
			name = k
			values = append(values, v)
		}
	}
	if name == "" {
		return metav1.LabelSelector{}, false
	}
	slices.Sort(values)
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: name, Operator: metav1.LabelSelectorOpIn, Values: slices.Compact(values)}}}, true
}

// merged selects what both do.
func merged(a *metav1.LabelSelector, b metav1.LabelSelector) *metav1.LabelSelector {
	if a == nil {
		return &b
	}
	for k, v := range b.MatchLabels {
		if was, ok := a.MatchLabels[k]; ok && was != v {
			a.MatchExpressions = append(a.MatchExpressions, metav1.LabelSelectorRequirement{Key: k, Operator: metav1.LabelSelectorOpIn, Values: []string{v}})
			continue
		}
		if a.MatchLabels == nil {
			a.MatchLabels = map[string]string{}
		}
		a.MatchLabels[k] = v
	}
	a.MatchExpressions = append(a.MatchExpressions, b.MatchExpressions...)
	return a
}

// tinkerbellImage is the image of a machine: its own, or that of the cluster.
func (c *conversion) tinkerbellImage(d *document, s *fields) infrav1.Image {
	format, distro, version := s.string("imageLookupFormat"), s.string("imageLookupOSDistro"), s.string("imageLookupOSVersion")
	s.lost("imageLookupBaseRegistry", "images are kept by the appliance: rackstrap image add NAME URL --os OS --os-version VERSION --kubernetes-version VERSION")
	if format != "" && format != captFormat {
		c.note(d, true, s.where("imageLookupFormat"), "%s: an image is looked up in the appliance by its OS and Kubernetes version; where names follow a rule give it in image.lookup.format, as {os}-{version}-kube-{kubernetesVersion}", format)
	}
	if image := s.string("osImage"); image != "" {
		if strings.HasPrefix(image, "http://") || strings.HasPrefix(image, "https://") {
			return infrav1.Image{URL: image}
		}
		if name := imageName(image); name != image {
			c.note(d, true, s.where("osImage"), "%s cannot be the name of an image: add it as %s (rackstrap image add %s URL)", image, name, name)
			return infrav1.Image{Name: name}
		}
		c.note(d, false, s.where("osImage"), "is an image of the appliance: rackstrap image add %s URL", image)
		return infrav1.Image{Name: image}
	}
	of := c.clusterOf(d)
	distro, version = orWord(distro, of.distro), orWord(version, of.version)
	distro = orWord(distro, captDistro)
	hint := fmt.Sprintf("bring the image: rackstrap image add NAME URL --os %s --os-version %s --kubernetes-version VERSION", distro, orWord(version, "VERSION"))
	c.note(d, false, s.where("image"), "%s", hint)
	return infrav1.Image{Lookup: &infrav1.ImageLookup{OS: distro, Version: version}}
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

// clusterOf is what the TinkerbellCluster says of a machine or a template: by its label, by what
// refers to it, or the only one of its namespace.
func (c *conversion) clusterOf(d *document) lookup {
	ns := d.key().namespace
	name := text(object(object(d.value, "metadata"), "labels"), "cluster.x-k8s.io/cluster-name")
	for _, x := range c.docs {
		if name != "" {
			break
		}
		if x.key().namespace == ns && refersTo(x.value["spec"], d.key().name) {
			name = text(object(x.value, "spec"), "clusterName")
			if x.kind() == "KubeadmControlPlane" {
				name = c.ownerOf(x)
			}
		}
	}
	for _, x := range c.docs {
		if x.kind() == "Cluster" && x.key() == (key{ns, name}) {
			name = text(object(object(x.value, "spec"), "infrastructureRef"), "name")
			break
		}
	}
	if of, ok := c.clusters[key{ns, name}]; ok {
		return of
	}
	var only []lookup
	for k, of := range c.clusters {
		if k.namespace == ns {
			only = append(only, of)
		}
	}
	if len(only) == 1 {
		return only[0]
	}
	return lookup{}
}

// ownerOf is the Cluster whose control plane x is.
func (c *conversion) ownerOf(x *document) string {
	for _, o := range c.docs {
		if o.kind() == "Cluster" && o.key().namespace == x.key().namespace && text(object(object(o.value, "spec"), "controlPlaneRef"), "name") == x.key().name {
			return o.key().name
		}
	}
	return ""
}

// refersTo reports whether a reference in v names a machine template.
func refersTo(v any, name string) bool {
	switch v := v.(type) {
	case map[string]any:
		if k := text(v, "kind"); text(v, "name") == name && strings.HasSuffix(k, "MachineTemplate") {
			return true
		}
		for _, x := range v {
			if refersTo(x, name) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(x any) bool { return refersTo(x, name) })
	}
	return false
}

// imageName is s as the name of an image of the appliance: lower-case letters, digits
// and dashes.
func imageName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s))
	if len(s) > 63 {
		s = s[:63]
	}
	s = strings.Trim(s, "-")
	if s == "" {
		return "image"
	}
	return s
}
