package convert

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// renamed are the kinds that others refer to.
func renamed(kind string) string {
	for _, prefix := range []string{"Tinkerbell", "Metal3"} {
		rest, ok := strings.CutPrefix(kind, prefix)
		if ok && slices.Contains([]string{"Cluster", "ClusterTemplate", "Machine", "MachineTemplate", "Remediation", "RemediationTemplate"}, rest) {
			return "Rackstrap" + rest
		}
	}
	return ""
}

func isReference(m map[string]any) bool {
	_, version := m["apiVersion"]
	_, group := m["apiGroup"]
	return text(m, "kind") != "" && text(m, "name") != "" && (version || group)
}

// rename points the references of an object to our kinds, and the texts that its
// bootstrap data has for the other provider to our meta-data. It reports whether it
// changed anything.
func (c *conversion) rename(d *document) bool {
	changed := false
	boots := strings.HasPrefix(d.group(), "bootstrap.") || strings.HasPrefix(d.group(), "controlplane.")
	var walk func(at string, v any) any
	walk = func(at string, v any) any {
		switch v := v.(type) {
		case map[string]any:
			if isReference(v) && at != "" {
				changed = c.reference(d, v) || changed
			}
			for _, k := range slices.Sorted(maps.Keys(v)) {
				v[k] = walk(strings.TrimPrefix(at+"."+k, "."), v[k])
			}
		case []any:
			for i := range v {
				v[i] = walk(fmt.Sprintf("%s[%d]", at, i), v[i])
			}
		case string:
			if !boots {
				return v
			}
			s := providerID.ReplaceAllString(v, "{{ ds.meta_data.provider_id }}")
			if s != v {
				changed = true
				c.note(d, false, at, "the provider id comes from the meta-data: {{ ds.meta_data.provider_id }}")
			}
			c.metaData(d, at, s)
			return s
		}
		return v
	}
	spec := d.value["spec"]
	d.value["spec"] = walk("spec", spec)
	if spec == nil {
		delete(d.value, "spec")
	}
	return changed
}

// providerID is how the others' manifests fill it in: CAPT replaces a word, CAPM3's
// users write meta-data that a Metal3DataTemplate makes.
var providerID = regexp.MustCompile(`\bPROVIDER_ID\b|(metal3|tinkerbell)://\{\{-?\s*ds\.meta_data[^}]*\}\}`)

var metaDataUse = regexp.MustCompile(`ds\.meta_data(?:\.([A-Za-z0-9_]+)|\[['"]([^'"]+)['"]\])`)

// ours are the keys of the meta-data that every machine has.
var ours = []string{"instance_id", "local_hostname", "name", "uuid", "hardware_uid", "provider_id", "availability_zone", "phone_home_url", "labels", "public_keys"}

// metaData notes meta-data that nobody fills in.
func (c *conversion) metaData(d *document, at, s string) {
	said := map[string]bool{}
	for _, m := range metaDataUse.FindAllStringSubmatch(s, -1) {
		name := m[1] + m[2]
		if said[name] || slices.Contains(ours, strings.ReplaceAll(name, "-", "_")) {
			continue
		}
		said[name] = true
		c.note(d, true, at, "uses the meta-data %s, which no machine has: give it in spec.template.spec.metaData of the RackstrapMachineTemplate", name)
	}
}

// reference points one reference to our kind, or to the version of kubeadm's kinds that
// the conversion gives.
func (c *conversion) reference(d *document, m map[string]any) bool {
	group := text(m, "apiGroup")
	version := ""
	if v := text(m, "apiVersion"); v != "" {
		group, version, _ = strings.Cut(v, "/")
	}
	switch {
	case group == infraGroup && renamed(text(m, "kind")) != "":
		m["kind"] = renamed(text(m, "kind"))
		if version != "" {
			m["apiVersion"] = infraGroup + "/v1beta1"
		}
		return true
	case version != "" && version != "v1beta2" && upgrades()[group+"/"+text(m, "kind")].run != nil && d.version() != "v1beta2":
		m["apiVersion"] = group + "/v1beta2"
		return true
	}
	return false
}

// references notes references into other namespaces, which v1beta2 cannot say.
func (c *conversion) references(d *document, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if isReference(v) && at != "" {
			if ns := text(v, "namespace"); ns != "" && ns != d.key().namespace && d.key().namespace != "" {
				c.note(d, true, at+".namespace", "%s: an object and what it refers to are in the same namespace; move it to %s", ns, d.key().namespace)
			}
			for _, k := range []string{"uid", "resourceVersion", "fieldPath"} {
				delete(v, k)
			}
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			c.references(d, strings.TrimPrefix(at+"."+k, "."), v[k])
		}
	case []any:
		for i := range v {
			c.references(d, fmt.Sprintf("%s[%d]", at, i), v[i])
		}
	}
}

// metadata takes out of an object what the server and the controllers wrote.
func (c *conversion) metadata(d *document) {
	var gone []string
	m := object(d.value, "metadata")
	for _, k := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink", "ownerReferences", "finalizers", "clusterName"} {
		if v, ok := m[k]; ok {
			delete(m, k)
			if !empty(v) {
				gone = append(gone, "metadata."+k)
			}
		}
	}
	a := object(m, "annotations")
	for _, k := range []string{"kubectl.kubernetes.io/last-applied-configuration", "cluster.x-k8s.io/conversion-data"} {
		if _, ok := a[k]; ok {
			delete(a, k)
			gone = append(gone, "annotation "+k)
		}
	}
	if a != nil && len(a) == 0 {
		delete(m, "annotations")
	}
	if v, ok := d.value["status"]; ok {
		delete(d.value, "status")
		if !empty(v) {
			gone = append(gone, "status")
		}
	}
	if len(gone) > 0 {
		c.note(d, false, "", "what the server and controllers write is left out: %s", strings.Join(gone, ", "))
	}
}
