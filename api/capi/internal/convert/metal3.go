package convert

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// metal3Domain is the label of a host that says its failure domain to CAPM3.
const metal3Domain = "infrastructure.cluster.x-k8s.io/failure-domain"

func (c *conversion) metal3Cluster(d *document) (any, error) {
	meta, s := c.spec(d)
	return c.made(d, "RackstrapCluster", meta, c.metal3ClusterSpec(d, s))
}

func (c *conversion) metal3ClusterTemplate(d *document) (any, error) {
	meta, s := c.spec(d)
	t := s.at("template")
	s.rest()
	var out infrav1.RackstrapClusterTemplateSpec
	decode(t, "metadata", &out.Template.ObjectMeta)
	out.Template.Spec = c.metal3ClusterSpec(d, t.at("spec"))
	t.rest()
	return c.made(d, "RackstrapClusterTemplate", meta, out)
}

func (c *conversion) metal3ClusterSpec(d *document, s *fields) infrav1.RackstrapClusterSpec {
	out := infrav1.RackstrapClusterSpec{ControlPlaneEndpoint: s.endpoint(), Appliance: c.appliance(d)}
	const cloud = "nodes get their provider id from kubelet or from the provider, never from a cloud provider: leave --cloud-provider=external out of kubelet's arguments"
	if s.bool("cloudProviderEnabled") {
		c.note(d, true, s.where("cloudProviderEnabled"), "%s", cloud)
	}
	if v, ok := s.take("noCloudProvider"); ok && v == false {
		c.note(d, true, s.where("noCloudProvider"), "%s", cloud)
	}
	c.metal3Domains(d, s, &out)
	s.rest()
	return out
}

// metal3Domains turns the list that people keep into the label that ours follow from.
// v1beta1 has a map, v1beta2 a list.
func (c *conversion) metal3Domains(d *document, s *fields, out *infrav1.RackstrapClusterSpec) {
	const field = "failureDomains"
	if !s.has(field) {
		delete(s.m, field)
		return
	}
	where := s.where(field)
	controlPlane := map[string]bool{}
	read := func(name string, f *fields) {
		controlPlane[name] = f.bool("controlPlane")
		f.lost("attributes", "failure domains have no attributes")
		f.rest()
	}
	if m, ok := s.m[field].(map[string]any); ok {
		f := s.at(field)
		for _, name := range slices.Sorted(maps.Keys(m)) {
			read(name, f.at(name))
		}
	} else {
		for _, f := range s.list(field) {
			if name := f.string("name"); name != "" {
				read(name, f)
			}
		}
	}
	out.FailureDomains = infrav1.FailureDomains{Label: metal3Domain, Placement: infrav1.PlacementPreferred}
	for _, name := range slices.Sorted(maps.Keys(controlPlane)) {
		if controlPlane[name] {
			out.FailureDomains.ControlPlane = append(out.FailureDomains.ControlPlane, name)
		}
	}
	if len(out.FailureDomains.ControlPlane) == len(controlPlane) {
		out.FailureDomains.ControlPlane = nil
	}
	c.note(d, false, where, "are the values of a label of the Hardware: give each its %s", metal3Domain)
}

func (c *conversion) metal3MachineTemplate(d *document) (any, error) {
	meta, s := c.spec(d)
	reuse := s.bool("nodeReuse")
	t := s.at("template")
	s.rest()
	var out infrav1.RackstrapMachineTemplateSpec
	decode(t, "metadata", &out.Template.ObjectMeta)
	out.Template.Spec = c.metal3(d, t.at("spec"), reuse, true)
	t.rest()
	return c.made(d, "RackstrapMachineTemplate", meta, out)
}

func (c *conversion) metal3Machine(d *document) (any, error) {
	meta, s := c.spec(d)
	return c.made(d, "RackstrapMachine", meta, c.metal3(d, s, false, false))
}

// metal3 is the spec of a machine.
func (c *conversion) metal3(d *document, s *fields, reuse, template bool) infrav1.RackstrapMachineSpec {
	var out infrav1.RackstrapMachineSpec
	if template {
		s.lost("providerID", "is left out: the provider gives each machine its own, rackstrap://…")
	} else {
		s.written("providerID", "is left out: the provider gives it")
	}
	out.Image = c.metal3Image(d, s.at("image"))
	c.metal3Selector(d, s.at("hostSelector"), &out)
	cleaning := s.string("automatedCleaningMode")
	switch {
	case reuse && cleaning == "disabled":
		out.Reuse.Disks = infrav1.ReuseKeep
	case reuse:
		out.Reuse.Disks = infrav1.ReuseWipe
	case cleaning == "disabled":
		c.note(d, true, s.where("automatedCleaningMode"), "disabled: a machine that is given back is always wiped, and read back; reuse.disks: Keep keeps the disks for the machine that replaces it")
	}
	const data = "the data comes from the bootstrap provider: put what is in the Secret into the KubeadmConfigTemplate (files, users, preKubeadmCommands)"
	s.lost("userData", data)
	s.lost("metaData", "give the keys in metaData: they are read as ds.meta_data.KEY")
	s.lost("networkData", "give a cloud-init network-config in network.config, or addresses from pools in network.addresses; else the Hardware's record says it")
	s.lost("dataTemplate", "there are no data templates: meta-data are metaData (read as ds.meta_data.KEY), addresses from pools are network.addresses, another network is network.config")
	s.lost("customDeploy", givenByAppliance)
	s.lost("failureDomain", "is that of the Machine: set failureDomain in the spec of the MachineDeployment's template")
	s.rest()
	return out
}

// selectorOps are what a host selector may say, in words of ours.
var selectorOps = map[string]metav1.LabelSelectorOperator{
	"in": metav1.LabelSelectorOpIn, "=": metav1.LabelSelectorOpIn, "==": metav1.LabelSelectorOpIn,
	"notin": metav1.LabelSelectorOpNotIn, "!=": metav1.LabelSelectorOpNotIn,
	"exists": metav1.LabelSelectorOpExists, "!": metav1.LabelSelectorOpDoesNotExist, "doesnotexist": metav1.LabelSelectorOpDoesNotExist,
}

func (c *conversion) metal3Selector(d *document, s *fields, out *infrav1.RackstrapMachineSpec) {
	if len(s.m) == 0 {
		return
	}
	sel := &metav1.LabelSelector{}
	decode(s, "matchLabels", &sel.MatchLabels)
	for _, e := range s.list("matchExpressions") {
		r := metav1.LabelSelectorRequirement{Key: e.string("key")}
		op := e.string("operator")
		r.Operator = selectorOps[strings.ToLower(op)]
		decode(e, "values", &r.Values)
		e.rest()
		if r.Key == "" || r.Operator == "" {
			c.note(d, true, e.path, "cannot be said of labels: key %q, operator %q; give the Hardware a label for it, or use requirements", r.Key, op)
			continue
		}
		if r.Operator == metav1.LabelSelectorOpExists || r.Operator == metav1.LabelSelectorOpDoesNotExist {
			r.Values = nil
		}
		sel.MatchExpressions = append(sel.MatchExpressions, r)
	}
	s.lost("namespace", "Hardware is in the appliance, and has no namespace: the claimer's token says which of it may be taken")
	s.rest()
	if len(sel.MatchLabels)+len(sel.MatchExpressions) > 0 {
		out.HardwareSelector = sel
	}
}

var (
	hexDigest  = regexp.MustCompile(`^[0-9a-fA-F]+$`)
	digestName = map[int]string{32: "md5", 64: "sha256", 128: "sha512"}
)

func (c *conversion) metal3Image(d *document, s *fields) infrav1.Image {
	out := infrav1.Image{URL: s.string("url")}
	sum, kind := s.string("checksum"), strings.ToLower(s.string("checksumType"))
	for _, name := range []string{"format", "diskFormat"} {
		if f := s.string(name); f != "" && f != "raw" && f != "qcow2" {
			c.note(d, true, s.where(name), "%s: images are whole disks, raw or qcow2; convert it first (qemu-img convert)", f)
		}
	}
	s.rest()
	if !strings.HasPrefix(out.URL, "http://") && !strings.HasPrefix(out.URL, "https://") {
		c.note(d, true, s.where("url"), "%q: machines are installed with an image of the appliance or from an http(s) URL: put it in place of change-me", out.URL)
		return infrav1.Image{Name: "change-me"}
	}
	name := digestName[len(sum)]
	switch {
	case sum == "" || strings.HasPrefix(sum, "http://") || strings.HasPrefix(sum, "https://"):
		out.Checksum = sum
	case hexDigest.MatchString(sum) && name != "" && (kind == "" || kind == "auto" || kind == name):
		out.Checksum = name + ":" + strings.ToLower(sum)
	default:
		c.note(d, true, s.where("checksum"), "%q is no %s checksum: write sha256:HEX, sha512:HEX, md5:HEX or the URL of a list of checksums", sum, orWord(kind, "known"))
	}
	if strings.HasPrefix(out.Checksum, "md5:") {
		c.note(d, false, s.where("checksum"), "md5 protects from accidents only; use sha256")
	}
	return out
}

func (c *conversion) metal3Remediation(d *document) (any, error) {
	meta, s := c.spec(d)
	return c.made(d, "RackstrapRemediation", meta, c.metal3Strategy(d, s))
}

func (c *conversion) metal3RemediationTemplate(d *document) (any, error) {
	meta, s := c.spec(d)
	t := s.at("template")
	s.rest()
	var out infrav1.RackstrapRemediationTemplateSpec
	decode(t, "metadata", &out.Template.ObjectMeta)
	out.Template.Spec = c.metal3Strategy(d, t.at("spec"))
	t.rest()
	return c.made(d, "RackstrapRemediationTemplate", meta, out)
}

// metal3Strategy is what CAPM3 does: cycle the power, then have the Machine replaced.
func (c *conversion) metal3Strategy(d *document, s *fields) infrav1.RackstrapRemediationSpec {
	st := s.at("strategy")
	out := infrav1.RackstrapRemediationSpec{Reinstall: infrav1.ReinstallNever}
	if kind := st.string("type"); kind != "" && kind != "Reboot" {
		c.note(d, true, st.where("type"), "%s: the power is cycled, then the Machine is replaced", kind)
	}
	if n, ok := st.int("retryLimit"); ok {
		n = max(0, min(10, n))
		out.PowerCycles = &n
	}
	if n, ok := st.int("timeoutSeconds"); ok {
		out.TimeoutSeconds = max(10, min(86400, n))
	}
	if t := st.string("timeout"); t != "" {
		each, err := time.ParseDuration(t)
		if err != nil {
			c.note(d, true, st.where("timeout"), "%q is no duration", t)
		} else {
			out.TimeoutSeconds = int32(max(10, min(86400, int64(each/time.Second))))
		}
	}
	st.rest()
	s.rest()
	return out
}
