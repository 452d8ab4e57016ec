package machine

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
)

func TestClaimSpec(t *testing.T) {
	t.Parallel()
	v := fresh()
	v.machine.Spec.FailureDomain = "b"
	v.object.Spec.HardwareClaim = infrav1.HardwareClaim{
		HardwareSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"tier": "prod", "cpu": "epyc"},
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "room", Operator: metav1.LabelSelectorOpIn, Values: []string{"2", "1"}},
				{Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist},
				{Key: "rack", Operator: metav1.LabelSelectorOpExists},
				{Key: "row", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"9"}},
			},
		},
		Requirements: infrav1.Requirements{
			Architecture: "amd64", CPUs: 8, Memory: ptr.To(resource.MustParse("64Gi")),
			Disks: []infrav1.DiskRequirement{{Count: 2, Size: ptr.To(resource.MustParse("1e12")), Transport: "nvme", Rotational: ptr.To(false)}},
			NICs:  []infrav1.NICRequirement{{Mbps: 10000}},
		},
		Preferred: []infrav1.PreferredHardware{{Weight: -5, HardwareSelector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "yes"}}}},
		Spread:    infrav1.Spread{Label: "rack", Weight: 20},
	}
	v.object.Spec.Reuse.Disks = infrav1.ReuseKeep
	v.infra.Spec.FailureDomains = infrav1.FailureDomains{Label: "zone", Placement: infrav1.PlacementPreferred}
	got := claimSpec(v, "capi/default/c/m", "capi/default/c/md", map[string]int{"a": 1, "b": 3, "c": 1, "": 4, "d": 9})
	want := hardware.ClaimSpec{
		Owner: "capi/default/c/m", Selector: "cpu=epyc,tier=prod,room in (1,2),!old,rack,row notin (9)",
		Requirements: hardware.Requirements{
			Arch: "amd64", CPUs: 8, Memory: "64Gi",
			Disks: []hardware.DiskRequirement{{Count: 2, Size: "1000000000000", Transport: "nvme", Rotational: ptr.To(false)}},
			NICs:  []hardware.NICRequirement{{Mbps: 10000}},
		},
		FailureDomain: "b", FailureDomainLabel: "zone", FailureDomainPreferred: true, Reuse: "capi/default/c/md",
		Prefer: []hardware.Preference{
			{Selector: "gpu=yes", Weight: -5}, {Selector: "rack in (d)", Weight: -100}, {Selector: "rack in (b)", Weight: -60}, {Selector: "rack in (a,c)", Weight: -20},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

// The failure domain of the Machine is obeyed unless there are none; ours has no field
// for it, which the core would copy over the Machine's.
func TestContractFailureDomain(t *testing.T) {
	t.Parallel()
	v := fresh()
	v.machine.Spec.FailureDomain = "b"
	if s := claimSpec(v, "o", "", nil); s.FailureDomain != "b" || s.FailureDomainPreferred {
		t.Errorf("%+v", s)
	}
	v.infra.Spec.FailureDomains.Disabled = ptr.To(true)
	if s := claimSpec(v, "o", "", nil); s.FailureDomain != "" {
		t.Errorf("%+v", s)
	}
	if _, has := reflect.TypeFor[infrav1.RackstrapMachineSpec]().FieldByName("FailureDomain"); has {
		t.Error("the core would copy spec.failureDomain into the Machine")
	}
}

func TestProvision(t *testing.T) {
	t.Parallel()
	o := claimed().object
	o.Spec.MetaData = map[string]string{"room": "1: {", "rack": "a\n\"b\""}
	b := bootstrap{data: []byte("#cloud-config\n"), format: "cloud-config"}
	rq, why := provision(o, &image{name: "node"}, b, "")
	if why != "" || rq.Claim != "id" || rq.Name != "capi-id" || rq.MetaData != "\"rack\": \"a\\n\\\"b\\\"\"\n\"room\": \"1: {\"\n" || rq.Reinstall {
		t.Errorf("%+v, %s", rq, why)
	}
	// nobody but the appliance says which machine it is
	for _, key := range []string{"provider-id", "provider_id", "instance-id"} {
		o.Spec.MetaData = map[string]string{key: "x"}
		if _, why := provision(o, &image{}, b, ""); !strings.Contains(why, key) {
			t.Errorf("%s: %q", key, why)
		}
	}
}

func TestReadBootstrap(t *testing.T) {
	t.Parallel()
	text := func(kv ...string) map[string][]byte {
		out := map[string][]byte{}
		for i := 0; i < len(kv); i += 2 {
			out[kv[i]] = []byte(kv[i+1])
		}
		return out
	}
	for _, x := range []struct {
		data             map[string][]byte
		fallback, format string
		bad              bool
	}{
		{data: text("value", "x", "format", "ignition"), fallback: "talos", format: "ignition"},
		{data: text("value", "x"), fallback: "talos", format: "talos"}, // Talos' Secrets have no format
		{data: text("value", "x"), format: "cloud-config"},
		{data: text("format", "ignition"), format: "ignition", bad: true},
		{data: text("value", "x", "format", "powershell"), format: "powershell", bad: true},
		{data: text("value", "secret\xff"), format: "cloud-config", bad: true},
	} {
		b, why := readBootstrap("s", x.data, x.fallback)
		if b.format != x.format || (why != "") != x.bad || strings.Contains(why, "secret\xff") {
			t.Errorf("%v: %q, %q", x.data, b.format, why)
		}
	}
}

func TestImageName(t *testing.T) {
	t.Parallel()
	l := &infrav1.ImageLookup{OS: "Debian", Version: "12", Format: "{os}-{version}-kube-{kubernetesVersion}"}
	if got := imageName(l, "v1.36.3"); got != "debian-12-kube-v1-36-3" {
		t.Error(got)
	}
}

func TestReserve(t *testing.T) {
	t.Parallel()
	o := claimed().object
	if r := reserve(o, "g"); r != nil {
		t.Errorf("not asked for: %+v", r)
	}
	o.Spec.Reuse = infrav1.Reuse{Disks: infrav1.ReuseKeep, Seconds: 60}
	if r := reserve(o, "g"); r == nil || r.For != "g" || !r.KeepDisks || time.Duration(r.Within) != time.Minute {
		t.Errorf("%+v", r)
	}
	if r := reserve(o, ""); r != nil {
		t.Errorf("alone: %+v", r)
	}
}
