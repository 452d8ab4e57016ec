package convert

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiconversion "k8s.io/apimachinery/pkg/conversion"
	//lint:ignore SA1019 what is converted is old
	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	//lint:ignore SA1019 what is converted is old
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	//lint:ignore SA1019 what is converted is old
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	bootstrapconversion "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/conversion"
	controlplaneconversion "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	coreconversion "sigs.k8s.io/cluster-api/core/webhooks/conversion"
	kjson "sigs.k8s.io/json"
)

// upgrader converts one kind of the Cluster API to v1beta2, with upstream's own code.
type upgrader struct {
	// run gives the new object, the old one as it was read, and the old one as it would
	// come back: what differs was lost.
	run func(data []byte, unknown func(string)) (out any, was, back map[string]any, err error)
}

func upgrade[S, H any](up func(context.Context, *S, *H) error, back func(*H, *S, apiconversion.Scope) error, after func(*H, *S)) upgrader {
	return upgrader{func(data []byte, unknown func(string)) (any, map[string]any, map[string]any, error) {
		src, again, dst := new(S), new(S), new(H)
		if err := strict(data, src, unknown); err != nil {
			return nil, nil, nil, err
		}
		// Upstream's code may change what it converts.
		was, err := toValue(src)
		if err != nil {
			return nil, nil, nil, err
		}
		if err := guarded(func() error { return up(context.Background(), src, dst) }); err != nil {
			return nil, nil, nil, err
		}
		if err := guarded(func() error { return back(dst, again, nil) }); err != nil {
			return nil, nil, nil, err
		}
		if after != nil {
			after(dst, again)
		}
		returned, err := toValue(again)
		return dst, was, returned, err
	}}
}

// guarded is f, whose panic is an error: it is written for objects that an API server
// has let pass.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the Cluster API's own conversion fails: %v", r)
		}
	}()
	return f()
}

// strict reads data into out; unknown is called for what out has no place for.
func strict(data []byte, out any, unknown func(string)) error {
	wrong, err := kjson.UnmarshalStrict(data, out)
	for _, w := range wrong {
		unknown(strings.ReplaceAll(w.Error(), `"`, "") + ", is left out")
	}
	return err
}

// upgrades are the kinds of which older versions are converted.
func upgrades() map[string]upgrader {
	const core, bootstrap, controlplane = "cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"
	return map[string]upgrader{
		core + "/Cluster":            upgrade(coreconversion.ConvertClusterV1Beta1ToHub, clusterv1beta1.Convert_v1beta2_Cluster_To_v1beta1_Cluster, nil),
		core + "/ClusterClass":       upgrade(coreconversion.ConvertClusterClassV1Beta1ToHub, clusterv1beta1.Convert_v1beta2_ClusterClass_To_v1beta1_ClusterClass, nil),
		core + "/Machine":            upgrade(coreconversion.ConvertMachineV1Beta1ToHub, clusterv1beta1.Convert_v1beta2_Machine_To_v1beta1_Machine, nil),
		core + "/MachineSet":         upgrade(coreconversion.ConvertMachineSetV1Beta1ToHub, clusterv1beta1.Convert_v1beta2_MachineSet_To_v1beta1_MachineSet, nil),
		core + "/MachineDeployment":  upgrade(coreconversion.ConvertMachineDeploymentV1Beta1ToHub, clusterv1beta1.Convert_v1beta2_MachineDeployment_To_v1beta1_MachineDeployment, nil),
		core + "/MachineHealthCheck": upgrade(coreconversion.ConvertMachineHealthCheckV1Beta1ToHub, clusterv1beta1.Convert_v1beta2_MachineHealthCheck_To_v1beta1_MachineHealthCheck, nil),
		bootstrap + "/KubeadmConfig": upgrade(bootstrapconversion.ConvertKubeadmConfigV1Beta1ToHub, bootstrapv1beta1.Convert_v1beta2_KubeadmConfig_To_v1beta1_KubeadmConfig,
			func(h *bootstrapv1.KubeadmConfig, s *bootstrapv1beta1.KubeadmConfig) {
				bootstrapconversion.ConvertKubeadmConfigSpecHubToV1Beta1(context.Background(), &h.Spec, &s.Spec)
			}),
		bootstrap + "/KubeadmConfigTemplate": upgrade(bootstrapconversion.ConvertKubeadmConfigTemplateV1Beta1ToHub, bootstrapv1beta1.Convert_v1beta2_KubeadmConfigTemplate_To_v1beta1_KubeadmConfigTemplate,
			func(h *bootstrapv1.KubeadmConfigTemplate, s *bootstrapv1beta1.KubeadmConfigTemplate) {
				bootstrapconversion.ConvertKubeadmConfigSpecHubToV1Beta1(context.Background(), &h.Spec.Template.Spec, &s.Spec.Template.Spec)
			}),
		controlplane + "/KubeadmControlPlane": upgrade(controlplaneconversion.ConvertKubeadmControlPlaneV1Beta1ToHub, controlplanev1beta1.Convert_v1beta2_KubeadmControlPlane_To_v1beta1_KubeadmControlPlane,
			func(h *controlplanev1.KubeadmControlPlane, s *controlplanev1beta1.KubeadmControlPlane) {
				bootstrapconversion.ConvertKubeadmConfigSpecHubToV1Beta1(context.Background(), &h.Spec.KubeadmConfigSpec, &s.Spec.KubeadmConfigSpec)
			}),
		controlplane + "/KubeadmControlPlaneTemplate": upgrade(controlplaneconversion.ConvertKubeadmControlPlaneTemplateV1Beta1ToHub, controlplanev1beta1.Convert_v1beta2_KubeadmControlPlaneTemplate_To_v1beta1_KubeadmControlPlaneTemplate,
			func(h *controlplanev1.KubeadmControlPlaneTemplate, s *controlplanev1beta1.KubeadmControlPlaneTemplate) {
				bootstrapconversion.ConvertKubeadmConfigSpecHubToV1Beta1(context.Background(), &h.Spec.Template.Spec.KubeadmConfigSpec, &s.Spec.Template.Spec.KubeadmConfigSpec)
			}),
	}
}

// upgrade is d in version v1beta2.
func (c *conversion) upgrade(d *document, u upgrader) (any, error) {
	c.metadata(d)
	c.older(d)
	c.references(d, "", d.value)
	group := d.group()
	d.value["apiVersion"] = group + "/v1beta1"
	data, err := json.Marshal(d.value)
	if err != nil {
		return nil, err
	}
	out, was, back, err := u.run(data, func(what string) { c.note(d, true, "", "%s", what) })
	if err != nil {
		return nil, err
	}
	c.compare(d, "", was, back)
	value, err := toValue(out)
	if err != nil {
		return nil, err
	}
	value["apiVersion"], value["kind"] = group+"/v1beta2", d.kind()
	return value, nil
}

// compare notes what is in was and not in back.
func (c *conversion) compare(d *document, at string, was, back any) {
	switch w := was.(type) {
	case map[string]any:
		b, _ := back.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(w)) {
			// what is named by a reference is looked up, and its names are checked by references
			if m, ok := w[k].(map[string]any); ok && isReference(m) {
				continue
			}
			if at == "" && (k == "apiVersion" || k == "kind") {
				continue
			}
			c.compare(d, strings.TrimPrefix(at+"."+k, "."), w[k], b[k])
		}
	case []any:
		b, _ := back.([]any)
		for i := range w {
			var x any
			if i < len(b) {
				x = b[i]
			}
			c.compare(d, fmt.Sprintf("%s[%d]", at, i), w[i], x)
		}
	default:
		if empty(was) || fmt.Sprint(was) == "0" || reflect.DeepEqual(was, back) {
			return
		}
		if s, ok := was.(string); ok && strings.HasSuffix(s, "s") && back == nil && strings.Trim(s, "0hms") == "" {
			return // a duration of nothing
		}
		c.note(d, true, at, "%v has no place in v1beta2, and is left out", was)
	}
}
