package convert

import (
	"fmt"
	"strings"
)

// older turns what v1alpha3 and v1alpha4 had at other places into the shape of v1beta1,
// and notes what v1beta2 says in a way that is not converted.
func (c *conversion) older(d *document) {
	spec := object(d.value, "spec")
	if spec == nil {
		return
	}
	switch d.kind() {
	case "KubeadmControlPlane":
		if ref, ok := spec["infrastructureTemplate"]; ok { // v1alpha3
			t := object(spec, "machineTemplate")
			if t == nil {
				t = map[string]any{}
				spec["machineTemplate"] = t
			}
			t["infrastructureRef"] = ref
			delete(spec, "infrastructureTemplate")
			if v, ok := spec["nodeDrainTimeout"]; ok {
				t["nodeDrainTimeout"] = v
				delete(spec, "nodeDrainTimeout")
			}
		}
		if v, ok := spec["upgradeAfter"]; ok { // v1alpha3
			spec["rolloutAfter"] = v
			delete(spec, "upgradeAfter")
		}
		c.olderKubeadm(d, "spec.kubeadmConfigSpec", object(spec, "kubeadmConfigSpec"))
	case "KubeadmControlPlaneTemplate":
		c.olderKubeadm(d, "spec.template.spec.kubeadmConfigSpec", object(object(object(spec, "template"), "spec"), "kubeadmConfigSpec"))
	case "KubeadmConfig":
		c.olderKubeadm(d, "spec", spec)
	case "KubeadmConfigTemplate":
		c.olderKubeadm(d, "spec.template.spec", object(object(spec, "template"), "spec"))
	case "Machine":
		if id := text(spec, "providerID"); id != "" {
			delete(spec, "providerID")
			c.note(d, false, "spec.providerID", "is left out: the Machine gets it from its RackstrapMachine")
		}
	case "ClusterClass":
		c.olderClass(d, spec)
	}
}

// olderKubeadm takes out what kubeadm no longer has.
func (c *conversion) olderKubeadm(d *document, at string, spec map[string]any) {
	cc := object(spec, "clusterConfiguration")
	if _, ok := object(cc, "dns")["type"]; ok { // v1alpha3, v1alpha4: CoreDNS or kube-dns
		if t := text(object(cc, "dns"), "type"); t != "" && t != "CoreDNS" {
			c.note(d, true, at+".clusterConfiguration.dns.type", "%s is left out: kubeadm installs CoreDNS only", t)
		}
		delete(object(cc, "dns"), "type")
	}
	if v, ok := spec["useExperimentalRetryJoin"]; ok {
		if !empty(v) {
			c.note(d, true, at+".useExperimentalRetryJoin", "is left out: kubeadm tries again itself")
		}
		delete(spec, "useExperimentalRetryJoin")
	}
}

// olderClass points the selectors of patches to the new kinds. Their paths stay as they
// are: they are into objects that look different now.
func (c *conversion) olderClass(d *document, spec map[string]any) {
	patches, _ := spec["patches"].([]any)
	for i, p := range patches {
		m, _ := p.(map[string]any)
		definitions, _ := m["definitions"].([]any)
		for j, x := range definitions {
			definition, _ := x.(map[string]any)
			s := object(definition, "selector")
			group, _, _ := strings.Cut(text(s, "apiVersion"), "/")
			at := fmt.Sprintf("spec.patches[%d].definitions[%d]", i, j)
			switch {
			case group == infraGroup && renamed(text(s, "kind")) != "":
				s["kind"], s["apiVersion"] = renamed(text(s, "kind")), infraGroup+"/v1beta1"
			case upgrades()[group+"/"+text(s, "kind")].run != nil:
				s["apiVersion"] = group + "/v1beta2"
			default:
				continue
			}
			c.note(d, true, at, "the paths of the patch are those of the old kind: write them for %s of %s", text(s, "kind"), text(s, "apiVersion"))
		}
	}
}
