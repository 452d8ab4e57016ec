package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// TestWrongInputIsRefused: what the resolver or the worker would find after the wipe
// is found when the workflow is created, on a machine that never booted, and without
// a word of the seeds.
func TestWrongInputIsRefused(t *testing.T) {
	t.Parallel()
	a := openAppliance(t, t.TempDir())
	const ignitionConfig = `{"ignition": {"version": "3.4.0"}}`
	for i, m := range [][2]string{{"bare", ""}, {"cloud", "#cloud-config\npassword: tops3cret\n"}, {"fcos", ignitionConfig}} {
		nic := hardware.NIC{MAC: hardware.MAC{2, 0, 0, 0, 0, byte(i)}}
		h := &hardware.Hardware{Meta: hardware.Meta{Name: m[0]}, Spec: hardware.Spec{UserData: m[1], Interfaces: []hardware.NIC{nic}}}
		if err := a.db.CreateHardware(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	type params = map[string]any
	for _, tt := range []struct {
		name, machine, template string
		params                  params
		phone                   bool
		wrong                   string
	}{
		{"all from the record", "cloud", "install", nil, true, ""},
		{"all given", "bare", "install", params{"network": "version: 2\nethernets: {}\n", "metaData": "a: b\n", "userData": "#cloud-config\n"}, true, ""},
		{"meta-data is no mapping", "bare", "install", params{"metaData": "tops3cret"}, false, "metaData: is not a YAML mapping"},
		{"network is no document", "bare", "install", params{"network": "tops3cret"}, false, "actions[3] (network): config: is no mapping"},
		{"network of version 1", "bare", "install", params{"network": "version: 1\nconfig: []\n"}, false, "begin it with `version: 2`"},
		{"network with a key twice", "bare", "install", params{"network": "version: 2\npassword: tops3cret\npassword: tops3cret\n"}, false, "already defined"},
		{"ignition of the record", "fcos", "install-ignition", nil, false, ""},
		{"ignition given", "bare", "install-ignition", params{"userData": ignitionConfig}, false, ""},
		{"no ignition at all", "bare", "install-ignition", nil, false, "spec.userData is empty"},
		{"cloud-config for ignition", "cloud", "install-ignition", nil, false, "spec.userData is not JSON"},
		{"bad ignition", "fcos", "install-ignition", params{"userData": `{"tops3cret": 1}`}, false, "no ignition.version"},
		{"talos", "bare", "install-talos", params{"userData": "version: v1alpha1\n", "network": "version: 1\nconfig: []\n"}, false, ""},
		{"talos with another network", "bare", "install-talos", params{"userData": "version: v1alpha1\n", "network": "- tops3cret"}, false, "networkConfig: is no mapping"},
		{"talos with other meta-data", "bare", "install-talos", params{"userData": "version: v1alpha1\n", "metaData": "- tops3cret"}, false, "metaData: is not a YAML mapping"},
	} {
		spec := workflow.WorkflowSpec{Hardware: tt.machine, Template: tt.template, Purpose: workflow.PurposeInstall, WaitForPhoneHome: tt.phone, Params: params{"image": "http://images.example/a.raw"}}
		for k, v := range tt.params {
			spec.Params[k] = v
		}
		w, err := a.engine.CreateWorkflow(t.Context(), "w", spec)
		if tt.wrong == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			if _, err := a.engine.CancelWorkflow(t.Context(), w.Meta.Name, "the test goes on"); err != nil {
				t.Fatal(err)
			}
			if err := a.db.DeleteWorkflow(t.Context(), w.Meta.Name, 0); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if invalid := new(hardware.Invalid); !errors.As(err, &invalid) || !strings.Contains(err.Error(), tt.wrong) || strings.Contains(err.Error(), "tops3cret") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.wrong)
		}
	}
}

// TestServedSeedIsLookedAt: a seed that is served is wrong at creation too, not when
// the installed system asks for it.
func TestServedSeedIsLookedAt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := resolverOf(s)
	_, err := resolve(t, r, s.machine("m1"), &workflow.Workflow{}, workflow.KindCloudInit, &workflow.CloudInit{Serve: true, MetaData: "- a"})
	if err == nil || !strings.Contains(err.Error(), "metaData: is not a YAML mapping") {
		t.Error(err)
	}
}

// TestNoAddressAtDispatch: that nobody knows our address is no error of a draft, and
// one of the install that is under way.
func TestNoAddressAtDispatch(t *testing.T) {
	t.Parallel()
	a := openAppliance(t, t.TempDir())
	h := &hardware.Hardware{Meta: hardware.Meta{Name: "m1"}, Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC{2, 0, 0, 0, 0, 1}}}}}
	if err := a.db.CreateHardware(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	w := &workflow.Workflow{Meta: hardware.Meta{Name: "w"}, Spec: workflow.WorkflowSpec{WaitForPhoneHome: true}}
	for _, uid := range []string{"", "01JD0000000000000000000000"} {
		w.Meta.UID = uid
		_, err := resolve(t, a.resolver, h, w, workflow.KindCloudInit, &workflow.CloudInit{})
		if (err == nil) != (uid == "") || w.Meta.UID != uid {
			t.Errorf("uid %q: %v", uid, err)
		}
	}
}
