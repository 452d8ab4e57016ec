package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/capi/internal/appliance"
	"github.com/rackstrap/rackstrap/api/capi/internal/contract"
	"github.com/rackstrap/rackstrap/api/capi/internal/ipam"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	rackstrap "github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// work is one look at one object.
type work struct {
	*Reconciler
	*view
	rq reconcile.Request
	// app is nil before it was needed.
	app *appliance.Appliance
	// faulty: the appliance did not answer; it is asked again soon.
	faulty bool
}

// run does step after step until there is none. The error is one of the API server's;
// those of the appliance are decisions.
func (w *work) run(ctx context.Context) (decision, error) {
	asking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		d := decide(w.view)
		if d.step == stepWait || d.step == stepDone {
			return d, nil
		}
		stop, err := w.do(ctx, asking, d)
		if err != nil {
			if ctx.Err() != nil {
				return d, ctx.Err()
			}
			if stopped, ok := w.fault(d, err); ok && d.step == stepSeek && !w.object.DeletionTimestamp.IsZero() {
				w.sought, w.faulty = &sought{trouble: stopped.message}, false
				continue // what never had a claim waits for no appliance
			} else if ok {
				return stopped, nil
			}
			return d, err
		}
		if stop != nil {
			return *stop, nil
		}
	}
}

// do takes a step. A decision is returned where it was not possible, or where all else
// has to wait for it.
func (w *work) do(ctx, asking context.Context, d decision) (*decision, error) {
	switch d.step {
	case stepRecord:
		return w.record(ctx, asking)
	case stepAddresses:
		return nil, w.addresses(ctx)
	}
	if w.app == nil {
		ref := w.object.Spec.Appliance
		if w.object.Spec.ClaimID == "" {
			ref = w.infra.Spec.Appliance // which becomes ours with the claim
		}
		app, err := w.Appliances.For(ctx, w.object.Namespace, ref)
		if err != nil {
			return nil, err
		}
		w.app = app
		w.places.Put(w.rq, appliance.Place{Secret: app.Secret})
		if err := app.Spared(); err != nil {
			return nil, err
		}
	}
	switch d.step {
	case stepSeek, stepLook: // one of them is before anything else that is asked of the appliance
		ask := w.look
		if d.step == stepSeek {
			ask = w.seek
		}
		began := time.Now()
		err := ask(asking)
		w.app.Waited(err, time.Since(began))
		return nil, err
	case stepFind:
		var err error
		w.image, w.imageMissing, err = findImage(asking, w.app, w.object.Spec.Image, w.object.Spec.Requirements.Architecture, w.machine.Spec.Version)
		return nil, err
	case stepClaim:
		return w.claim(ctx, asking)
	case stepInstall:
		return w.install(ctx, asking)
	case stepRelease:
		return w.release(ctx, asking)
	}
	return nil, fmt.Errorf("step %d is not known", d.step)
}

// seek asks the appliance what it has of an object without a claimID.
func (w *work) seek(ctx context.Context) error {
	here, err := w.app.Version(ctx)
	if err != nil {
		return err
	}
	owner, active := w.owner(), true
	claims, err := w.app.ListClaims(ctx, rackstrap.ClaimFilter{Owner: owner, Active: &active})
	if err != nil {
		return err
	}
	w.sought = &sought{installation: here.Installation}
	for i := range claims {
		switch c := &claims[i]; {
		case c.Spec.Owner != owner:
		case w.object.UID != "" && c.Meta.Labels[infrav1.UIDLabel] == string(w.object.UID):
			w.sought.ours = c
		default:
			w.sought.other = c
		}
	}
	return nil
}

// record writes the claim's id, and whose it is, before anything is asked for under it.
// Somebody else's write in between makes it fail, so there is never a second id.
func (w *work) record(ctx, asking context.Context) (*decision, error) {
	base := w.object.DeepCopy()
	o := w.object.DeepCopy()
	switch s := w.sought; {
	case s == nil: // the id was written without the installation
		here, err := w.app.Version(asking)
		if err != nil {
			return nil, err
		}
		o.Spec.Installation = here.Installation
	case s.ours != nil:
		o.Spec.ClaimID, o.Spec.Installation, o.Spec.Appliance = s.ours.Meta.Name, s.installation, w.infra.Spec.Appliance
	default:
		o.Spec.ClaimID, o.Spec.Installation, o.Spec.Appliance = string(uuid.NewUUID()), s.installation, w.infra.Spec.Appliance
	}
	if err := w.Patch(ctx, o, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, err
	}
	return &decision{step: stepRecord}, nil // the write wakes us
}

// look reads the claim, its Hardware and its install.
func (w *work) look(ctx context.Context) error {
	s := &seen{}
	var err error
	if !w.pooled && w.object.DeletionTimestamp.IsZero() { // also where the spec asks for none any more
		if w.pool, err = ipam.Addresses(ctx, w.Client, w.object); err != nil {
			return err
		}
	}
	if s.claim, err = found(w.app.Claims.Get(ctx, w.object.Spec.ClaimID)); err != nil {
		return err
	}
	if want := installation(w.object); s.claim == nil && want != "" {
		here, err := w.app.Version(ctx)
		if err != nil {
			return err
		}
		if here.Installation != want {
			s.elsewhere = here.Installation
		}
	}
	if s.claim == nil || s.claim.Status.Hardware == "" { // or given up before it was made
		w.seen = s
		return nil
	}
	if s.hardware, err = found(w.app.Hardware.Get(ctx, s.claim.Status.Hardware)); err != nil {
		return err
	}
	if s.hardware != nil && s.hardware.Meta.UID != s.claim.Status.UID {
		s.hardware = nil // another machine has its name now
	}
	w.places.Put(w.rq, appliance.Place{Secret: w.app.Secret, Hardware: s.claim.Status.Hardware})
	if s.hardware != nil && w.object.DeletionTimestamp.IsZero() {
		if s.install, err = w.lookInstall(ctx, s.hardware); err != nil {
			return err
		}
	}
	w.seen = s
	if joinable(w.view) && s.hardware != nil && w.object.DeletionTimestamp.IsZero() && !reserved(s.hardware) {
		s.leases, err = w.app.Leases(ctx, rackstrap.LeaseFilter{Machine: s.hardware.Meta.Name, State: []string{string(hardware.LeaseActive)}})
		slices.SortFunc(s.leases, func(a, b api.Lease) int { return a.Addr.Compare(b.Addr) })
	}
	return err
}

// reserved reports whether the record says what addresses the machine has.
func reserved(h *hardware.Hardware) bool {
	return slices.ContainsFunc(h.Spec.Interfaces, func(n hardware.NIC) bool { return len(n.Addresses) > 0 })
}

// addresses asks the pools. The event of a claim that was served wakes us.
func (w *work) addresses(ctx context.Context) error {
	got, waiting, err := ipam.Ensure(ctx, w.Client, w.object)
	var bad *ipam.InvalidError
	switch {
	case errors.As(err, &bad):
		w.addressReason, w.addressTrouble = infrav1.InvalidSpecReason, bad.Detail
	case err != nil:
		return err
	case waiting != "":
		w.addressReason, w.addressTrouble = infrav1.WaitingForAddressesReason, waiting
	default:
		w.pool, w.pooled = got, true
	}
	return nil
}

// lookInstall finds the install of the claim: the one that runs, or ran last, on the
// machine, which may be a reinstall, else the first one by its name.
func (w *work) lookInstall(ctx context.Context, h *hardware.Hardware) (*api.Workflow, error) {
	for _, name := range []string{h.Status.Workflow, workflowName(w.object.Spec.ClaimID)} {
		if name == "" {
			continue
		}
		f, err := found(w.app.Workflows.Get(ctx, name))
		if err != nil {
			return nil, err
		}
		if f != nil && f.Spec.Claim == w.object.Spec.ClaimID && f.Spec.Purpose == workflow.PurposeInstall {
			return f, nil
		}
	}
	return nil, nil
}

// found makes nil of what is not found.
func found[T any](v *T, err error) (*T, error) {
	var p *api.Problem
	if errors.As(err, &p) && p.Code == api.CodeNotFound {
		return nil, nil
	}
	return v, err
}

// claim asks for a Hardware.
func (w *work) claim(ctx, asking context.Context) (*decision, error) {
	beside, done, err := w.beside(ctx, asking)
	if err != nil {
		return nil, err
	}
	defer done()
	c := &hardware.Claim{Meta: hardware.Meta{Name: w.object.Spec.ClaimID, Labels: map[string]string{infrav1.UIDLabel: string(w.object.UID)}}, Spec: claimSpec(w.view, w.owner(), w.group(), beside)}
	if _, err := w.app.Claim(asking, c); err != nil {
		return nil, err
	}
	return nil, w.look(asking)
}

// group is the group of owners that the machine's is in. The object has the labels of
// its Machine.
func (w *work) group() string {
	labels := w.object.Labels
	if w.machine != nil {
		labels = w.machine.Labels
	}
	if g := groupOf(labels); g != "" {
		return w.app.Owner(w.object.Namespace, w.object.Labels[clusterv1.ClusterNameLabel], g)
	}
	return ""
}

// install hands the bootstrap data over. The name of the workflow makes a second call
// the same install.
func (w *work) install(ctx, asking context.Context) (*decision, error) {
	rq, stop, err := w.request(ctx, asking)
	if stop != nil || err != nil {
		return stop, err
	}
	_, err = w.app.Provision(asking, w.seen.hardware.Meta.Name, rq)
	var p *api.Problem
	if err != nil && !(errors.As(err, &p) && p.Code == api.CodeExists) {
		return nil, err
	}
	return nil, w.look(asking)
}

// Request is what an install of a machine asks for, as it did the first time. why says
// that it cannot be made now.
func (r *Reconciler) Request(ctx context.Context, app *appliance.Appliance, o *infrav1.RackstrapMachine, m *clusterv1.Machine, h *hardware.Hardware) (rq api.Provision, why string, err error) {
	if ptr.Deref(m.Spec.Bootstrap.DataSecretName, "") == "" {
		return rq, "The Machine " + m.Name + " has no bootstrap data", nil
	}
	w := &work{Reconciler: r, view: &view{object: o, machine: m, seen: &seen{hardware: h}}, app: app}
	if asked := len(o.Spec.Network.Addresses); asked > 0 {
		if err := w.addresses(ctx); err != nil {
			return rq, "", err
		}
		if !w.pooled {
			return rq, w.addressTrouble, nil
		}
	}
	rq, stop, err := w.request(ctx, ctx)
	if stop != nil {
		why = stop.message
	}
	return rq, why, err
}

// request is what the install asks for; a decision says why it cannot be asked.
func (w *work) request(ctx, asking context.Context) (rq api.Provision, stop *decision, err error) {
	cannot := func(reason, why string) (api.Provision, *decision, error) {
		d := waits(infrav1.InstalledCondition, reason, "%s", why)
		return api.Provision{}, &d, nil
	}
	if w.image == nil {
		w.image, w.imageMissing, err = findImage(asking, w.app, w.object.Spec.Image, w.seen.hardware.Arch(), w.machine.Spec.Version)
		if err != nil {
			return rq, nil, err
		}
		if w.image == nil {
			return cannot(infrav1.ImageMissingReason, w.imageMissing)
		}
	}
	name := *w.machine.Spec.Bootstrap.DataSecretName
	secret := new(corev1.Secret)
	err = w.live.Get(ctx, client.ObjectKey{Namespace: w.object.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return cannot(infrav1.WaitingForBootstrapDataReason, fmt.Sprintf("The bootstrap Secret %s does not exist", name))
	}
	if err != nil {
		return rq, nil, err
	}
	b, why := readBootstrap(name, secret.Data, w.object.Spec.BootstrapFormat)
	if why != "" {
		return cannot(infrav1.BootstrapDataUnusableReason, why)
	}
	if rq, why = provision(w.object, w.image, b, w.object.Spec.Network.Config); why != "" {
		return cannot(infrav1.InvalidSpecReason, why)
	}
	var bad *ipam.InvalidError
	rq.Static, err = ipam.Static(w.object.Spec.Network, w.pool)
	if errors.As(err, &bad) {
		return cannot(infrav1.InvalidSpecReason, bad.Detail)
	}
	return rq, nil, err
}

// release ends the claim, or has its id refused where the request for it never arrived:
// it may yet. The object is read anew: what a cache shows as deleted may have been moved
// to another management cluster meanwhile, and its claim with it.
func (w *work) release(ctx, asking context.Context) (*decision, error) {
	now := new(infrav1.RackstrapMachine)
	if err := w.live.Get(ctx, w.rq.NamespacedName, now); apierrors.IsNotFound(err) {
		return &decision{}, nil
	} else if err != nil {
		return nil, err
	}
	if contract.Moved(now) || now.UID != w.object.UID {
		return &decision{}, nil
	}
	in := api.ReleaseClaim{Reason: "the RackstrapMachine " + w.object.Namespace + "/" + w.object.Name + " was deleted", Owner: w.owner()}
	if why, ok := w.object.Annotations[infrav1.UnhealthyAnnotation]; ok {
		in.Unhealthy = cmp.Or(why, "remediation gave the machine up")
	} else {
		in.Reserve = reserve(w.object, w.group())
	}
	if _, err := w.app.ReleaseClaimWith(asking, w.object.Spec.ClaimID, in); err != nil {
		return nil, err
	}
	return nil, w.look(asking)
}

// owner is that of the claim, also when the Machine is gone already: they have the
// name of the object in common but for people who made them by hand.
func (w *work) owner() string {
	machine, cluster := w.object.Name, w.object.Labels[clusterv1.ClusterNameLabel]
	if w.machine != nil {
		machine = w.machine.Name
	}
	return w.app.Owner(w.object.Namespace, cluster, machine)
}

// fault is an error of the appliance as a decision.
func (w *work) fault(d decision, err error) (decision, bool) {
	condition := infrav1.HardwareClaimedCondition
	switch {
	case !w.object.DeletionTimestamp.IsZero():
		condition = infrav1.ReleasedCondition
	case d.step == stepInstall:
		condition = infrav1.InstalledCondition
	}
	var p *api.Problem
	if errors.As(err, &p) {
		switch {
		case p.Code == api.CodeNoCandidate:
			return waits(condition, infrav1.NoHardwareFitsReason, "%s", words(p)), true
		case p.Code == api.CodeClaimEnded:
			return waits(condition, infrav1.ClaimLostReason, "%s", words(p)), true
		case p.Code == api.CodeInUse && d.step == stepInstall:
			return waits(condition, infrav1.WaitingForMachineReason, "%s", words(p)), true
		case p.Code == api.CodeInvalid && d.step == stepInstall:
			return waits(condition, refusedInstall(p), "%s", words(p)), true
		case p.Code == api.CodeInvalid && d.step == stepClaim, p.Code == api.CodeNotFound && d.step == stepClaim:
			return waits(condition, infrav1.InvalidSpecReason, "%s", words(p)), true
		}
	}
	reason, message := appliance.Trouble(err)
	if reason == "" {
		return decision{}, false
	}
	w.faulty = true
	if !w.object.DeletionTimestamp.IsZero() && w.object.Spec.ClaimID != "" {
		message += "; " + skipWords(w.object)
	}
	return waits(condition, reason, "%s", message), true
}

// words are a problem's detail, or what is wrong with its one field.
func words(p *api.Problem) string {
	if len(p.Errors) == 1 && p.Errors[0].Detail != "" {
		return p.Errors[0].Field + " " + p.Errors[0].Detail
	}
	return p.Error()
}

// refusedInstall says what a refused install waits for.
func refusedInstall(p *api.Problem) string {
	for _, e := range p.Errors {
		switch e.Field {
		case "spec.hardware", "spec.claim":
			return infrav1.WaitingForMachineReason // on hold, in quarantine, in maintenance
		case "userData":
			return infrav1.BootstrapDataUnusableReason
		}
	}
	return infrav1.InvalidSpecReason
}

// when the object is looked at again though nothing happened; 0 is not before the
// resync of everything.
func (w *work) when(d decision) time.Duration {
	switch {
	case w.faulty, d.reason == infrav1.ImageMissingReason:
		return soon
	case d.step == stepWait && d.blocks != "" && w.app != nil && d.reason != infrav1.OnHoldReason:
		return again
	}
	return 0
}

// letGo gives the addresses back and removes our finalizer. The RackstrapCluster sees
// it, and lets go of the Secret with the last one.
func (w *work) letGo(ctx context.Context) error {
	if err := ipam.Release(ctx, w.Client, w.object); err != nil {
		return err
	}
	base := w.object.DeepCopy()
	if controllerutil.RemoveFinalizer(w.object, infrav1.MachineFinalizer) {
		if err := w.Patch(ctx, w.object, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	w.places.Drop(w.rq)
	return nil
}
