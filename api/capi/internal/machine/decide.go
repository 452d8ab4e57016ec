package machine

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/capi/internal/ipam"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// step is what is done next.
type step int

const (
	// stepWait: nothing, until something happens.
	stepWait step = iota
	// stepSeek asks the appliance which one it is, and what it has claimed for an object that
	// has no claimID.
	stepSeek
	// stepRecord writes spec.claimID, spec.installation and spec.appliance, and nothing else.
	stepRecord
	// stepLook reads what the appliance has of the claim.
	stepLook
	// stepAddresses asks the pools for addresses.
	stepAddresses
	// stepFind looks for the image.
	stepFind
	// stepClaim asks for a Hardware.
	stepClaim
	// stepInstall asks for the install.
	stepInstall
	// stepRelease ends the claim.
	stepRelease
	// stepDone lets the object go.
	stepDone
)

// view is all that a decision is made from. What is nil is not there, or not yet.
type view struct {
	object  *infrav1.RackstrapMachine
	machine *clusterv1.Machine
	cluster *clusterv1.Cluster
	infra   *infrav1.RackstrapCluster
	// sought is nil before the appliance was asked.
	sought *sought
	// seen is nil before the appliance was asked.
	seen *seen
	// image is nil before it was looked for; imageMissing says why there is none.
	image        *image
	imageMissing string
	// pool are the addresses that pools gave, of those that the spec asks for; all of them
	// where pooled. addressTrouble is the reason and the sentence why some are missing.
	pool                          []ipam.Address
	pooled                        bool
	addressReason, addressTrouble string
}

// sought is what the appliance has of an object that has no claimID.
type sought struct {
	// installation is the appliance's.
	installation string
	// ours is the claim that was made for this very object, which then comes out of a backup
	// from before it; nil: there is none.
	ours *hardware.Claim
	// other is the claim that the same owner has for another object, or for none.
	other *hardware.Claim
	// trouble says why a deletion did not find out.
	trouble string
}

// seen is what the appliance has of one claim.
type seen struct {
	// claim is nil where the appliance does not know it.
	claim *hardware.Claim
	// hardware is nil where the record is gone, or is not ours to see any more.
	hardware *hardware.Hardware
	// install is the workflow that installs, or installed, the system under the claim.
	install *api.Workflow
	// leases are what DHCP has confirmed to the machine.
	leases []api.Lease
	// elsewhere is the installation that we ask, where the claim is known to be another's:
	// the Secret leads to another appliance now, which cannot know it.
	elsewhere string
}

// decision is the next step, and why it is no other.
type decision struct {
	step step
	// blocks is the condition that does not hold; empty where all do.
	blocks          string
	reason, message string
	// skipped names what a deletion does not wait for.
	skipped string
}

func waits(condition, reason, format string, args ...any) decision {
	return decision{step: stepWait, blocks: condition, reason: reason, message: fmt.Sprintf(format, args...)}
}

// decide says what is next.
func decide(v *view) decision {
	if !v.object.DeletionTimestamp.IsZero() {
		return decideDelete(v)
	}
	if v.object.Spec.ProviderID == "" || v.object.Spec.ClaimID == "" {
		if d := premise(v); d != nil {
			return *d
		}
	}
	switch {
	case v.object.Spec.ClaimID == "" && held(v.object):
		return onHold(infrav1.HardwareClaimedCondition)
	case v.object.Spec.ClaimID == "":
		return decideFirst(v)
	case v.seen == nil:
		return decision{step: stepLook}
	case v.seen.claim == nil && v.seen.elsewhere == "" && v.object.Spec.ProviderID == "":
		if v.object.Spec.Installation == "" {
			return decision{step: stepRecord}
		}
		return decideClaim(v)
	}
	if why := lost(v); why != "" {
		return waits(infrav1.HardwareClaimedCondition, infrav1.ClaimLostReason, "%s. The Machine is not installed again; delete it to replace it", why)
	}
	return decideInstall(v)
}

// premise is what the Cluster API has to do before anything can be claimed.
func premise(v *view) *decision {
	wait := func(reason, format string, args ...any) *decision {
		d := waits(infrav1.HardwareClaimedCondition, reason, format, args...)
		return &d
	}
	switch {
	case v.cluster == nil:
		return wait(infrav1.WaitingForClusterReason, "The label %s names no Cluster that exists", clusterv1.ClusterNameLabel)
	case !ptr.Deref(v.cluster.Status.Initialization.InfrastructureProvisioned, false):
		return wait(infrav1.WaitingForClusterReason, "The infrastructure of the Cluster %s is not ready (see: kubectl get rackstrapclusters)", v.cluster.Name)
	case v.infra == nil:
		return wait(infrav1.WaitingForClusterReason, "The Cluster %s names no RackstrapCluster that exists", v.cluster.Name)
	case v.object.Spec.ClaimID == "" && goes(v):
		// nothing may be claimed that a RackstrapCluster, which keeps the token, does not
		// see any more
		return wait(infrav1.WaitingForClusterReason, goesWords)
	case v.machine == nil || ptr.Deref(v.machine.Spec.Bootstrap.DataSecretName, "") == "":
		return wait(infrav1.WaitingForBootstrapDataReason, "The bootstrap provider has not made the bootstrap data yet")
	}
	return nil
}

// goes reports whether the machine is about to be deleted, which hooks of the Machine may
// put off for as long as they like: nothing is begun for it meanwhile.
func goes(v *view) bool {
	return !v.cluster.DeletionTimestamp.IsZero() || !v.infra.DeletionTimestamp.IsZero() || v.machine == nil || !v.machine.DeletionTimestamp.IsZero()
}

const goesWords = "The Cluster or the Machine is being deleted; nothing is claimed or installed for it"

func held(o *infrav1.RackstrapMachine) bool {
	_, ok := o.Annotations[infrav1.HoldAnnotation]
	return ok
}

func onHold(condition string) decision {
	return waits(condition, infrav1.OnHoldReason, "The annotation %s stops it here; remove it to go on", infrav1.HoldAnnotation)
}

// decideFirst is for a machine that has no claimID: it never had one, or it comes out of a
// backup.
func decideFirst(v *view) decision {
	if v.sought == nil {
		return decision{step: stepSeek}
	}
	if c := v.sought.other; c != nil && v.sought.ours == nil {
		o := v.object
		return waits(
			infrav1.HardwareClaimedCondition, infrav1.ClaimOfAnotherReason,
			"%s; give it back (rackstrap claim release %s), or have this object take it over: kubectl patch rackstrapmachine -n %s %s --type=merge -p '%s'",
			another(c), c.Meta.Name, o.Namespace, o.Name,
			fmt.Sprintf(`{"spec":{"claimID":%q,"installation":%q,"appliance":{"secretRef":{"name":%q}}}}`, c.Meta.Name, v.sought.installation, v.infra.Spec.Appliance.SecretRef.Name),
		)
	}
	return decision{step: stepRecord}
}

// another names a claim of our owner that is not known to be this object's.
func another(c *hardware.Claim) string {
	whose := "was made for no RackstrapMachine"
	if uid := c.Meta.Labels[infrav1.UIDLabel]; uid != "" {
		whose = "was made for another RackstrapMachine of this name, of the uid " + uid
	}
	return fmt.Sprintf("The appliance has the claim %s of %s on Hardware %s, which %s", c.Meta.Name, c.Spec.Owner, c.Status.Hardware, whose)
}

// decideClaim is for a machine that has no Hardware.
func decideClaim(v *view) decision {
	switch {
	case goes(v):
		return waits(infrav1.HardwareClaimedCondition, infrav1.WaitingForClusterReason, goesWords)
	case held(v.object):
		return onHold(infrav1.HardwareClaimedCondition)
	case v.image == nil && v.imageMissing == "":
		return decision{step: stepFind}
	case v.imageMissing != "":
		return waits(infrav1.HardwareClaimedCondition, infrav1.ImageMissingReason, "%s", v.imageMissing)
	}
	if d := decideAddresses(v); d != nil {
		return *d // before a machine is taken that could not be installed
	}
	return decision{step: stepClaim}
}

// decideAddresses is for a machine that asks pools for addresses; nil where it has them.
func decideAddresses(v *view) *decision {
	switch {
	case len(v.object.Spec.Network.Addresses) == 0 || v.pooled:
		return nil
	case v.addressTrouble != "":
		d := waits(infrav1.AddressesReadyCondition, v.addressReason, "%s", v.addressTrouble)
		return &d
	}
	return &decision{step: stepAddresses}
}

// lost says why the claim does not give us a machine any more, empty if it does.
func lost(v *view) string {
	c, h, id := v.seen.claim, v.seen.hardware, v.object.Spec.ClaimID
	switch {
	case c == nil && v.seen.elsewhere != "":
		return fmt.Sprintf("The Secret %s leads to the installation %s, and the claim %s is of another one, %s; put that one's url and token back into it", v.object.Spec.Appliance.SecretRef.Name, v.seen.elsewhere, id, installation(v.object))
	case c == nil:
		return fmt.Sprintf("The appliance does not know the claim %s, or its token may not see it; was the token in the Secret changed, or the appliance restored from an older backup?", id)
	case !c.Status.Ended.IsZero():
		return fmt.Sprintf("The claim %s of Hardware %s was ended in the appliance (see: rackstrap timeline %s)", id, c.Status.Hardware, c.Status.Hardware)
	case h == nil:
		return fmt.Sprintf("The Hardware %s of the claim %s is gone from the appliance, or is hidden from its token", c.Status.Hardware, id)
	case h.Status.Claim == nil || h.Status.Claim.ID != id:
		return fmt.Sprintf("The Hardware %s is not held by the claim %s any more (see: rackstrap hardware get %s)", c.Status.Hardware, id, c.Status.Hardware)
	}
	return ""
}

// installation is the one that has the claim, empty where that is not known.
func installation(o *infrav1.RackstrapMachine) string {
	if o.Spec.Installation != "" {
		return o.Spec.Installation
	}
	rest, _ := strings.CutPrefix(o.Spec.ProviderID, "rackstrap://")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// decideInstall is for a machine that has a Hardware.
func decideInstall(v *view) decision {
	h, w := v.seen.hardware, v.seen.install
	switch {
	case isProvisioned(v):
		return decision{}
	case h.Status.AwaitOS:
		return waits(infrav1.InstalledCondition, infrav1.WaitingForMachineReason, "Hardware %s is installed and restarts; its system has not called yet", h.Meta.Name)
	case w == nil && v.object.Spec.ProviderID == "":
		if goes(v) {
			return waits(infrav1.InstalledCondition, infrav1.WaitingForClusterReason, goesWords)
		}
		if held(v.object) {
			return onHold(infrav1.InstalledCondition)
		}
		if d := decideAddresses(v); d != nil {
			return *d
		}
		return decision{step: stepInstall}
	case w != nil && w.Status.State == workflow.StatePending:
		return waits(infrav1.InstalledCondition, infrav1.WaitingForMachineReason, "Hardware %s has not booted from the network yet%s", h.Meta.Name, worst(h))
	case w != nil && !w.Status.State.Ended():
		return waits(infrav1.InstalledCondition, infrav1.InstallingReason, "Workflow %s installs Hardware %s%s", w.Meta.Name, h.Meta.Name, worst(h))
	}
	return waits(infrav1.InstalledCondition, infrav1.InstallFailedReason, "%s; see: rackstrap explain %s", failure(h, w), h.Meta.Name)
}

// isProvisioned reports whether the system was installed, once. What happens to the
// machine later does not change it.
func isProvisioned(v *view) bool {
	if ptr.Deref(v.object.Status.Initialization.Provisioned, false) {
		return true
	}
	if v.seen == nil || !joinable(v) {
		return false
	}
	if lost(v) != "" {
		return true
	}
	h := &v.seen.hardware.Status
	return !h.AwaitOS && !h.State.Moving() && h.State != hardware.StateFailed
}

// joinable reports whether the machine's node may join: its system is on the disk, and
// it was restarted.
func joinable(v *view) bool {
	if v.object.Spec.ProviderID != "" {
		return true
	}
	return v.seen != nil && lost(v) == "" && v.seen.install != nil && v.seen.install.Status.State == workflow.StateSucceeded
}

// failure says in the appliance's words why an install failed.
func failure(h *hardware.Hardware, w *api.Workflow) string {
	switch {
	case w == nil:
		return fmt.Sprintf("The install of Hardware %s failed", h.Meta.Name)
	case w.Status.State == workflow.StateSucceeded:
		return fmt.Sprintf("Hardware %s was installed, and its system did not call in time", h.Meta.Name)
	case w.Status.Message == "":
		return fmt.Sprintf("The install of Hardware %s ended as %s", h.Meta.Name, w.Status.State)
	}
	return fmt.Sprintf("The install of Hardware %s %s: %s", h.Meta.Name, w.Status.State, w.Status.Message)
}

// worst is the first issue that needs help, as the end of a sentence. Its details are
// left out: they may change all the time.
func worst(h *hardware.Hardware) string {
	for _, i := range h.Status.Issues {
		if i.Severity == hardware.SeverityError {
			return fmt.Sprintf(": %s (see: rackstrap explain %s)", i.Kind.Title(), h.Meta.Name)
		}
	}
	return ""
}

// sentence is the end of one as a whole one.
func sentence(end string) string {
	s := strings.TrimPrefix(end, ": ")
	return strings.ToUpper(s[:1]) + s[1:]
}

// decideDelete asks for nothing but what the appliance says: no cluster, Machine, or
// bootstrap data has to be there.
func decideDelete(v *view) decision {
	o := v.object
	skip := skips(o)
	switch {
	case o.Spec.ClaimID == "":
		return decideUnclaimed(v, skip[infrav1.SkipRelease])
	case skip[infrav1.SkipRelease]:
		return decision{step: stepDone, skipped: fmt.Sprintf("The claim %s stays in the appliance%s, and what it installed may still run: %s skips the release", o.Spec.ClaimID, ofInstallation(o), infrav1.SkipAnnotation)}
	case v.seen == nil:
		return decision{step: stepLook}
	case v.seen.claim == nil && v.seen.elsewhere != "":
		// what is released there is not what runs
		return waits(infrav1.ReleasedCondition, infrav1.ClaimLostReason, "%s; %s", lost(v), skipWords(o))
	case v.seen.claim == nil || v.seen.claim.Status.Ended.IsZero():
		return decision{step: stepRelease}
	}
	c := v.seen.claim.Status
	switch {
	case c.Hardware == "" && o.Spec.ProviderID != "": // a restored appliance, which holds what it may not know everything of
		return decision{step: stepDone, skipped: fmt.Sprintf("Nobody knows whether %s still runs: the appliance did not know its claim; was it restored from an older backup? (see: rackstrap hardware list)", o.Spec.ProviderID)}
	case c.Stopped != nil && c.Stopped.By == hardware.StoppedByHold:
		return decision{step: stepDone, skipped: fmt.Sprintf("Nobody knows whether Hardware %s still runs: it could not be switched off in time, is on hold, and is refused its disk when it next boots from the network (see: rackstrap explain %s)", c.Hardware, c.Hardware)}
	case c.Stopped != nil:
		return decision{step: stepDone}
	case skip[infrav1.SkipPowerOff]:
		return decision{step: stepDone, skipped: fmt.Sprintf("Hardware %s may still run: %s does not wait for its power-off", c.Hardware, infrav1.SkipAnnotation)}
	}
	words := ""
	if h := v.seen.hardware; h != nil {
		words = worst(h)
	}
	return waits(infrav1.ReleasedCondition, infrav1.WaitingForPowerOffReason, "The claim has ended, and Hardware %s is not known to have stopped yet%s", c.Hardware, words)
}

func ofInstallation(o *infrav1.RackstrapMachine) string {
	if i := installation(o); i != "" {
		return " of the installation " + i
	}
	return ""
}

// decideUnclaimed is for a deletion of an object that has no claimID. It waits for nobody,
// and ends what the appliance has claimed for it all the same: the object may come out of a
// backup from before its claim.
func decideUnclaimed(v *view, skip bool) decision {
	switch {
	case v.infra == nil || skip:
		return decision{step: stepDone}
	case v.sought == nil:
		return decision{step: stepSeek}
	case v.sought.ours != nil:
		return decision{step: stepRecord}
	case v.sought.other != nil:
		return decision{step: stepDone, skipped: fmt.Sprintf("%s; it stays (to end it: rackstrap claim release %s)", another(v.sought.other), v.sought.other.Meta.Name)}
	case v.sought.trouble != "":
		return decision{step: stepDone, skipped: "Nobody knows whether the appliance has a claim of this machine from before a backup: " + v.sought.trouble}
	}
	return decision{step: stepDone}
}

// skipWords say how to end the deletion of a machine whose appliance is gone.
func skipWords(o *infrav1.RackstrapMachine) string {
	return fmt.Sprintf("the claim %s has to be ended there; where the appliance is gone for good: kubectl annotate rackstrapmachine -n %s %s %s=%s", o.Spec.ClaimID, o.Namespace, o.Name, infrav1.SkipAnnotation, infrav1.SkipRelease)
}

// skips is what the annotation names.
func skips(o *infrav1.RackstrapMachine) map[string]bool {
	out := map[string]bool{}
	for word := range strings.SplitSeq(o.Annotations[infrav1.SkipAnnotation], ",") {
		out[strings.TrimSpace(word)] = true
	}
	return out
}

// conditions says what a decision means, besides Paused.
func conditions(v *view, d decision) []metav1.Condition {
	var out []metav1.Condition
	add := func(kind string, ok bool, reason, message string) {
		status := metav1.ConditionFalse
		if ok {
			status = metav1.ConditionTrue
		}
		out = append(out, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	}
	if !v.object.DeletionTimestamp.IsZero() {
		if d.blocks != "" {
			add(infrav1.ReleasedCondition, false, d.reason, d.message)
			add(clusterv1.ReadyCondition, false, clusterv1.DeletingReason, d.message)
		}
		return out
	}
	if v.seen != nil && v.seen.claim != nil && lost(v) == "" {
		h := v.seen.hardware
		add(infrav1.HardwareClaimedCondition, true, infrav1.HardwareClaimedReason, "")
		if w := worst(h); w != "" {
			add(infrav1.HardwareHealthyCondition, false, infrav1.HardwareIssueReason, sentence(w))
		} else {
			add(infrav1.HardwareHealthyCondition, true, infrav1.HardwareHealthyReason, "")
		}
	}
	if asked := len(v.object.Spec.Network.Addresses); asked > 0 && (v.pooled || len(v.pool) == asked) {
		add(infrav1.AddressesReadyCondition, true, infrav1.AddressesReadyReason, "")
	}
	if v.seen != nil && isProvisioned(v) {
		add(infrav1.InstalledCondition, true, infrav1.InstalledReason, "")
	}
	if d.blocks != "" {
		add(d.blocks, false, d.reason, d.message)
		add(clusterv1.ReadyCondition, false, d.reason, d.message)
	} else if d.step == stepWait {
		add(clusterv1.ReadyCondition, true, clusterv1.ReadyReason, "")
	}
	return out
}
