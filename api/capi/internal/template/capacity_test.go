package template

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
)

func machine(name string, cpus int, memory uint64, state hardware.State, disks ...uint64) hardware.Hardware {
	h := hardware.Hardware{Meta: hardware.Meta{Name: name}, Status: hardware.Status{State: state}, Facts: &hardware.Facts{Arch: "amd64", CPUs: cpus, MemoryBytes: memory}}
	for _, n := range disks {
		h.Facts.Disks = append(h.Facts.Disks, hardware.DiskFact{Bytes: n})
	}
	if state == hardware.StateProvisioned {
		h.Status.Claim = &hardware.ClaimRef{ID: "c", Owner: "o"}
	}
	return h
}

// The capacity is the least of what fits, whoever has it; free is what nobody has.
func TestMeasure(t *testing.T) {
	t.Parallel()
	hw := []hardware.Hardware{
		machine("small", 2, 8<<30, hardware.StateAvailable, 100e9),
		machine("used", 4, 16<<30, hardware.StateProvisioned, 500e9, 200e9),
		machine("large", 8, 64<<30, hardware.StateAvailable, 1000e9),
		machine("gone", 1, 1<<30, hardware.StateRetired, 1e9),
		{Meta: hardware.Meta{Name: "unknown"}, Status: hardware.Status{State: hardware.StateAvailable}},
	}
	memory := resource.MustParse("16Gi")
	for name, tc := range map[string]struct {
		spec              infrav1.RackstrapMachineSpec
		fits, free        int32
		cpu, memory, disk int64
		arch              string
	}{
		"any":          {infrav1.RackstrapMachineSpec{}, 4, 3, 2, 8 << 30, 100e9, "amd64"},
		"with memory":  {infrav1.RackstrapMachineSpec{HardwareClaim: infrav1.HardwareClaim{Requirements: infrav1.Requirements{Memory: &memory}}}, 2, 1, 4, 16 << 30, 200e9, "amd64"},
		"largest disk": {infrav1.RackstrapMachineSpec{HardwareClaim: infrav1.HardwareClaim{HardwareName: "used"}, Install: infrav1.Install{Disk: "largest"}}, 1, 0, 4, 16 << 30, 500e9, "amd64"},
		"none":         {infrav1.RackstrapMachineSpec{HardwareClaim: infrav1.HardwareClaim{HardwareSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}, 0, 0, 0, 0, 0, ""},
	} {
		c, err := measure(&tc.spec, "capi/c1/t", hw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.fits != tc.fits || c.free != tc.free || c.resources.Cpu().Value() != tc.cpu || c.resources.Memory().Value() != tc.memory || c.resources.StorageEphemeral().Value() != tc.disk || c.node.Architecture != tc.arch {
			t.Errorf("%s: %+v", name, c)
		}
	}
	bad := infrav1.RackstrapMachineSpec{HardwareClaim: infrav1.HardwareClaim{HardwareSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like", Values: []string{"b"}}}}}}
	if _, err := measure(&bad, "capi/c1/t", hw); !errors.As(err, new(*hardware.Invalid)) {
		t.Errorf("a selector that makes no sense: %v", err)
	}
}
