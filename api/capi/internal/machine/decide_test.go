package machine

import (
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/rackstrap/rackstrap/api"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// fresh is a machine for which everything is ready, and nothing was done.
func fresh() *view {
	v := &view{
		object:  &infrav1.RackstrapMachine{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "default"}},
		machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: map[string]string{clusterv1.MachineDeploymentNameLabel: "md"}}},
		cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
		infra:   &infrav1.RackstrapCluster{},
	}
	v.cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	v.machine.Spec.Bootstrap.DataSecretName = ptr.To("m-data")
	v.machine.Spec.Version = "v1.36.3"
	return v
}

// claimed has a Hardware; nothing is installed.
func claimed() *view {
	v := fresh()
	v.object.Spec.ClaimID, v.object.Spec.Installation, v.object.Spec.Appliance.SecretRef.Name = "id", "i", "rackstrap"
	v.image = &image{name: "node"}
	v.seen = &seen{
		claim: &hardware.Claim{
			Meta:   hardware.Meta{Name: "id"},
			Status: hardware.ClaimStatus{Hardware: "hw1", UID: "uid1", Claimed: time.Unix(1, 0), ProviderID: "rackstrap://i/uid1/id"},
		},
		hardware: &hardware.Hardware{Meta: hardware.Meta{Name: "hw1", UID: "uid1", Labels: map[string]string{"rack": "a"}}},
	}
	v.seen.hardware.Status = hardware.Status{State: hardware.StateAvailable, Claim: &hardware.ClaimRef{ID: "id"}}
	return v
}

// installing has a workflow in that state.
func installing(s workflow.State, h hardware.State) *view {
	v := claimed()
	v.seen.install = &api.Workflow{Workflow: workflow.Workflow{Meta: hardware.Meta{Name: "capi-id"}}}
	v.seen.install.Status.State = s
	v.seen.hardware.Status.State = h
	return v
}

// installed was provisioned before.
func installed() *view {
	v := installing(workflow.StateSucceeded, hardware.StateProvisioned)
	v.object.Spec.ProviderID = "rackstrap://i/uid1/id"
	v.object.Status.Initialization.Provisioned = ptr.To(true)
	return v
}

// deleted is v while it is being deleted.
func deleted(v *view) *view {
	v.object.DeletionTimestamp = &metav1.Time{Time: time.Unix(2, 0)}
	return v
}

// with is v after a change.
func with(v *view, change func(v *view)) *view {
	change(v)
	return v
}

func TestDecide(t *testing.T) {
	t.Parallel()
	now := metav1.Time{Time: time.Unix(2, 0)}
	hold := func(v *view) { v.object.Annotations = map[string]string{infrav1.HoldAnnotation: ""} }
	skip := func(what string) func(*view) {
		return func(v *view) { v.object.Annotations = map[string]string{infrav1.SkipAnnotation: what} }
	}
	over := func(by hardware.StoppedBy) func(*view) {
		return func(v *view) {
			v.seen.claim.Status.Ended, v.seen.hardware.Status.Claim = time.Unix(3, 0), nil
			v.seen.hardware.Status.State = hardware.StateReleasing
			if by != "" {
				v.seen.claim.Status.Stopped = &hardware.Stopped{By: by}
			}
		}
	}
	mine := &hardware.Claim{Meta: hardware.Meta{Name: "old", Labels: map[string]string{infrav1.UIDLabel: "uid"}}, Spec: hardware.ClaimSpec{Owner: "capi/m"}, Status: hardware.ClaimStatus{Hardware: "hw1"}}
	const claim, install, release = infrav1.HardwareClaimedCondition, infrav1.InstalledCondition, infrav1.ReleasedCondition
	for name, x := range map[string]struct {
		view    *view
		step    step
		blocks  string
		reason  string
		says    string
		skipped string
	}{
		"no cluster":                 {view: with(fresh(), func(v *view) { v.cluster, v.infra = nil, nil }), blocks: claim, reason: infrav1.WaitingForClusterReason},
		"cluster not ready":          {view: with(fresh(), func(v *view) { v.cluster.Status.Initialization.InfrastructureProvisioned = nil }), blocks: claim, reason: infrav1.WaitingForClusterReason},
		"not our cluster":            {view: with(fresh(), func(v *view) { v.infra = nil }), blocks: claim, reason: infrav1.WaitingForClusterReason},
		"no bootstrap data":          {view: with(fresh(), func(v *view) { v.machine.Spec.Bootstrap.DataSecretName = nil }), blocks: claim, reason: infrav1.WaitingForBootstrapDataReason},
		"cluster goes":               {view: with(fresh(), func(v *view) { v.cluster.DeletionTimestamp = &now }), blocks: claim, reason: infrav1.WaitingForClusterReason},
		"RackstrapCluster goes":      {view: with(fresh(), func(v *view) { v.infra.DeletionTimestamp = &now }), blocks: claim, reason: infrav1.WaitingForClusterReason},
		"Machine goes":               {view: with(fresh(), func(v *view) { v.machine.DeletionTimestamp = &now }), blocks: claim, reason: infrav1.WaitingForClusterReason},
		"held before the claim":      {view: with(fresh(), hold), blocks: claim, reason: infrav1.OnHoldReason},
		"a look for an old claim":    {view: fresh(), step: stepSeek},
		"then an id":                 {view: with(fresh(), func(v *view) { v.sought = &sought{installation: "i"} }), step: stepRecord},
		"out of a backup":            {view: with(fresh(), func(v *view) { v.sought = &sought{installation: "i", ours: mine, other: mine} }), step: stepRecord},
		"made anew from a backup":    {view: with(fresh(), func(v *view) { v.sought = &sought{installation: "i", other: mine} }), blocks: claim, reason: infrav1.ClaimOfAnotherReason, says: "claim old of capi/m on Hardware hw1"},
		"an id without an appliance": {view: with(claimed(), func(v *view) { v.seen, v.object.Spec.Installation = &seen{}, "" }), step: stepRecord},
		"then a look":                {view: with(claimed(), func(v *view) { v.seen = nil }), step: stepLook},
		"then the image":             {view: with(claimed(), func(v *view) { v.seen, v.image = &seen{}, nil }), step: stepFind},
		"no image":                   {view: with(claimed(), func(v *view) { v.seen, v.image, v.imageMissing = &seen{}, nil, "add it" }), blocks: claim, reason: infrav1.ImageMissingReason, says: "add it"},
		"then the claim":             {view: with(claimed(), func(v *view) { v.seen = &seen{} }), step: stepClaim},
		"held after the id":          {view: with(with(claimed(), func(v *view) { v.seen = &seen{} }), hold), blocks: claim, reason: infrav1.OnHoldReason},
		"then the install":           {view: claimed(), step: stepInstall},
		"held before the install":    {view: with(claimed(), hold), blocks: install, reason: infrav1.OnHoldReason},
		"waits for its boot":         {view: installing(workflow.StatePending, hardware.StateProvisioning), blocks: install, reason: infrav1.WaitingForMachineReason, says: "hw1"},
		"installing":                 {view: installing(workflow.StateRunning, hardware.StateProvisioning), blocks: install, reason: infrav1.InstallingReason, says: "capi-id"},
		"installed":                  {view: installing(workflow.StateSucceeded, hardware.StateProvisioned)},
		"waits for the phone":        {view: with(installing(workflow.StateSucceeded, hardware.StateProvisioning), func(v *view) { v.seen.hardware.Status.AwaitOS = true }), blocks: install, reason: infrav1.WaitingForMachineReason, says: "called"},
		"never called":               {view: installing(workflow.StateSucceeded, hardware.StateFailed), blocks: install, reason: infrav1.InstallFailedReason, says: "rackstrap explain hw1"},
		"failed":                     {view: with(installing(workflow.StateFailed, hardware.StateFailed), func(v *view) { v.seen.install.Status.Message = "disk is full" }), blocks: install, reason: infrav1.InstallFailedReason, says: "disk is full"},
		"timed out":                  {view: installing(workflow.StateTimedOut, hardware.StateFailed), blocks: install, reason: infrav1.InstallFailedReason},
		"cancelled":                  {view: installing(workflow.StateCancelled, hardware.StateAvailable), blocks: install, reason: infrav1.InstallFailedReason},
		"claim ended":                {view: with(installing(workflow.StateRunning, hardware.StateProvisioning), over("")), blocks: claim, reason: infrav1.ClaimLostReason, says: "hw1"},
		"hardware gone":              {view: with(claimed(), func(v *view) { v.seen.hardware = nil }), blocks: claim, reason: infrav1.ClaimLostReason, says: "hw1"},
		"hardware is another's":      {view: with(claimed(), func(v *view) { v.seen.hardware.Status.Claim.ID = "other" }), blocks: claim, reason: infrav1.ClaimLostReason},
		"provisioned":                {view: installed()},
		"looks first":                {view: with(installed(), func(v *view) { v.seen = nil }), step: stepLook},
		"no cluster any more":        {view: with(installed(), func(v *view) { v.cluster, v.infra = nil, nil })},
		"no bootstrap any more":      {view: with(installed(), func(v *view) { v.machine.Spec.Bootstrap.DataSecretName = nil })},
		"a later workflow failed":    {view: with(installed(), func(v *view) { v.seen.hardware.Status.State, v.seen.install = hardware.StateFailed, nil })},
		"provisioned, claim unknown": {view: with(installed(), func(v *view) { v.seen = &seen{} }), blocks: claim, reason: infrav1.ClaimLostReason, says: "backup"},
		"provisioned, claim ended":   {view: with(installed(), over("")), blocks: claim, reason: infrav1.ClaimLostReason},
		"provisioned, record gone":   {view: with(installed(), func(v *view) { v.seen.hardware = nil }), blocks: claim, reason: infrav1.ClaimLostReason},

		"the Secret leads to another":                    {view: with(installed(), func(v *view) { v.seen = &seen{elsewhere: "other"} }), blocks: claim, reason: infrav1.ClaimLostReason, says: "installation other"},
		"the Secret leads to another before the install": {view: with(claimed(), func(v *view) { v.seen = &seen{elsewhere: "other"} }), blocks: claim, reason: infrav1.ClaimLostReason, says: "leads to the installation other, and the claim id is of another one, i;"},
		"Machine goes, waits for a hook": {view: with(claimed(), func(v *view) {
			v.seen, v.machine.DeletionTimestamp = &seen{}, &now
		}), blocks: claim, reason: infrav1.WaitingForClusterReason},
		"Machine goes before the install": {view: with(claimed(), func(v *view) { v.machine.DeletionTimestamp = &now }), blocks: install, reason: infrav1.WaitingForClusterReason},

		"deleted before an id":                 {view: deleted(fresh()), step: stepSeek},
		"deleted, never had one":               {view: deleted(with(fresh(), func(v *view) { v.sought = &sought{} })), step: stepDone},
		"deleted, out of a backup":             {view: deleted(with(fresh(), func(v *view) { v.sought = &sought{ours: mine} })), step: stepRecord},
		"deleted, another's claim":             {view: deleted(with(fresh(), func(v *view) { v.sought = &sought{other: mine} })), step: stepDone, skipped: "rackstrap claim release old"},
		"deleted, nobody answers":              {view: deleted(with(fresh(), func(v *view) { v.sought = &sought{trouble: "it is down"} })), step: stepDone, skipped: "it is down"},
		"deleted without both":                 {view: deleted(with(fresh(), func(v *view) { v.infra = nil })), step: stepDone},
		"deleted before an install, elsewhere": {view: deleted(with(claimed(), func(v *view) { v.seen = &seen{elsewhere: "other"} })), blocks: release, reason: infrav1.ClaimLostReason, says: "skip=release"},
		"deleted without a cluster":            {view: deleted(with(installed(), func(v *view) { v.cluster, v.infra, v.machine, v.seen = nil, nil, nil, nil })), step: stepLook},
		"deleted while held":                   {view: deleted(with(installed(), hold)), step: stepRelease},
		"deleted, claimed":                     {view: deleted(claimed()), step: stepRelease},
		"deleted, installing":                  {view: deleted(installing(workflow.StateRunning, hardware.StateProvisioning)), step: stepRelease},
		"deleted, claim never made":            {view: deleted(with(claimed(), func(v *view) { v.seen = &seen{} })), step: stepRelease},
		"deleted, id barred": {view: deleted(with(claimed(), func(v *view) {
			v.seen = &seen{claim: &hardware.Claim{Status: hardware.ClaimStatus{Ended: time.Unix(3, 0), Stopped: &hardware.Stopped{By: hardware.StoppedNeverRan}}}}
		})), step: stepDone},
		"deleted, elsewhere":          {view: deleted(with(installed(), func(v *view) { v.seen = &seen{elsewhere: "other"} })), blocks: release, reason: infrav1.ClaimLostReason, says: "skip=release"},
		"deleted, elsewhere, skipped": {view: deleted(with(with(installed(), func(v *view) { v.seen = &seen{elsewhere: "other"} }), skip("release"))), step: stepDone, skipped: "id"},
		"deleted, restored": {view: deleted(with(installed(), func(v *view) {
			v.seen = &seen{claim: &hardware.Claim{Status: hardware.ClaimStatus{Ended: time.Unix(3, 0), Stopped: &hardware.Stopped{By: hardware.StoppedNeverRan}}}}
		})), step: stepDone, skipped: "rackstrap://i/uid1/id"},
		"deleted, may still run":      {view: deleted(with(installed(), over(""))), blocks: release, reason: infrav1.WaitingForPowerOffReason, says: "hw1"},
		"deleted, off":                {view: deleted(with(installed(), over(hardware.StoppedByPowerOff))), step: stepDone},
		"deleted, record gone too":    {view: deleted(with(with(installed(), over(hardware.StoppedByWorker)), func(v *view) { v.seen.hardware = nil })), step: stepDone},
		"deleted, deadline":           {view: deleted(with(installed(), over(hardware.StoppedByHold))), step: stepDone, skipped: "hw1"},
		"deleted, skips power-off":    {view: deleted(with(with(installed(), over("")), skip("power-off"))), step: stepDone, skipped: "may still run"},
		"power-off does not skip all": {view: deleted(with(installed(), skip("power-off"))), step: stepRelease},
		"deleted, skips release":      {view: deleted(with(with(installed(), skip("power-off, release")), func(v *view) { v.seen = nil })), step: stepDone, skipped: "id"},
	} {
		d := decide(x.view)
		if d.step != x.step || d.blocks != x.blocks || d.reason != x.reason || !strings.Contains(d.message, x.says) || (d.skipped == "") != (x.skipped == "") || !strings.Contains(d.skipped, x.skipped) {
			t.Errorf("%s: %+v", name, d)
		}
		// what is decided is decided again
		if again := decide(x.view); again != d {
			t.Errorf("%s: %+v, then %+v", name, d, again)
		}
	}
}

// Nothing that can be seen makes a machine that was installed be installed again, or
// claimed again: whatever its Hardware, its claim and its workflows look like.
func TestNeverInstalledTwice(t *testing.T) {
	t.Parallel()
	states := []workflow.State{"", workflow.StatePending, workflow.StateRunning, workflow.StateSucceeded, workflow.StateFailed, workflow.StateTimedOut, workflow.StateCancelled}
	for _, ws := range states {
		for _, hs := range append(hardware.States(), "gone") {
			for _, moved := range []bool{false, true} { // clusterctl move leaves the status behind
				for _, ended := range []bool{false, true} {
					v := installing(ws, hs)
					v.object.Spec.ProviderID = "rackstrap://i/uid1/id"
					v.object.Status.Initialization.Provisioned = ptr.To(!moved)
					if moved {
						v.object.Status = infrav1.RackstrapMachineStatus{}
					}
					if ws == "" {
						v.seen.install = nil
					}
					if hs == "gone" {
						v.seen.hardware = nil
					}
					if ended {
						v.seen.claim.Status.Ended = time.Unix(3, 0)
					}
					if d := decide(v); d.step != stepWait {
						t.Errorf("workflow %q, hardware %q, moved %v, ended %v: %+v", ws, hs, moved, ended, d)
					}
				}
			}
		}
	}
}

// The status can be lost, as in a move, and is the same after one look.
func TestStatusIsSeenAgain(t *testing.T) {
	t.Parallel()
	v := installing(workflow.StateSucceeded, hardware.StateProvisioned)
	report(v, decide(v))
	if v.object.Spec.ProviderID != "rackstrap://i/uid1/id" || !ptr.Deref(v.object.Status.Initialization.Provisioned, false) {
		t.Fatalf("%+v", v.object)
	}
	want := v.object.DeepCopy()
	v.object.Status = infrav1.RackstrapMachineStatus{}
	report(v, decide(v))
	for _, o := range []*infrav1.RackstrapMachine{want, v.object} {
		for i := range o.Status.Conditions {
			o.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
	}
	if a, b := want.Status, v.object.Status; len(a.Conditions) != len(b.Conditions) || *a.Hardware != *b.Hardware || len(a.Addresses) != len(b.Addresses) || a.FailureDomain != b.FailureDomain || a.FailureDomain != "a" {
		t.Errorf("%+v\nnow %+v", a, b)
	}
}

// The id of the provider is there when the node may join, which is before its system
// has called; provisioned waits for the call where that was asked for.
func TestProviderIDWhenTheNodeMayJoin(t *testing.T) {
	t.Parallel()
	for _, s := range []workflow.State{workflow.StatePending, workflow.StateRunning, workflow.StateFailed} {
		v := installing(s, hardware.StateProvisioning)
		if report(v, decide(v)); v.object.Spec.ProviderID != "" || v.object.Status.Initialization.Provisioned != nil {
			t.Errorf("%s: %+v", s, v.object)
		}
	}
	v := installing(workflow.StateSucceeded, hardware.StateProvisioning)
	v.seen.hardware.Status.AwaitOS = true
	if report(v, decide(v)); v.object.Spec.ProviderID == "" || v.object.Status.Initialization.Provisioned != nil {
		t.Errorf("before the call: %+v", v.object)
	}
	v.seen.hardware.Status = hardware.Status{State: hardware.StateProvisioned, Claim: v.seen.hardware.Status.Claim}
	if report(v, decide(v)); !ptr.Deref(v.object.Status.Initialization.Provisioned, false) {
		t.Errorf("after it: %+v", v.object)
	}
}

// A failed install is seen by a MachineHealthCheck: Ready, which the Machine mirrors as
// InfrastructureReady, is False with the reason.
func TestContractFailuresAreConditions(t *testing.T) {
	t.Parallel()
	v := with(installing(workflow.StateFailed, hardware.StateFailed), func(v *view) { v.seen.install.Status.Message = "disk is full" })
	report(v, decide(v))
	c := ready(v.object)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != infrav1.InstallFailedReason || !strings.Contains(c.Message, "disk is full") {
		t.Errorf("%+v", c)
	}
}

// Progress of the machine writes nothing: the object is the same.
func TestProgressIsNoWrite(t *testing.T) {
	t.Parallel()
	v := installing(workflow.StateRunning, hardware.StateProvisioning)
	report(v, decide(v))
	before := v.object.DeepCopy()
	v.seen.install.Status.Current = 3
	v.seen.install.Progress = &workflow.Progress{Done: 7}
	v.seen.hardware.Status.Power.Checked = time.Now()
	v.seen.hardware.Status.Issues = []hardware.Issue{{Kind: hardware.IssueActionRetrying, Severity: hardware.SeverityWarning, Detail: "try 7"}}
	report(v, decide(v))
	if !reflect.DeepEqual(before, v.object) {
		t.Errorf("%+v\nwas %+v", v.object.Status, before.Status)
	}
}
