package suite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	clientapi "github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/deploy/lab/kube"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// witness sees every RackstrapMachine, and when it was first wanted no more.
type witness struct {
	s *suite.Suite

	mu      sync.Mutex
	live    map[string]*infrav1.RackstrapMachine // by uid; those that are wanted
	ended   map[string]time.Time                 // by claim: when its object was deleted, to the second
	claims  map[string]string                    // all that were seen: their object's name
	against []string
}

// run watches until ctx ends, over any number of lives of the API server.
func (w *witness) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.follow(ctx); err != nil && ctx.Err() == nil {
			time.Sleep(200 * time.Millisecond) // a server that is away is asked again
		}
	}
}

func (w *witness) follow(ctx context.Context) error {
	var list infrav1.RackstrapMachineList
	if err := w.s.Client.List(ctx, &list); err != nil {
		return err
	}
	w.relist(list.Items)
	events, err := w.s.Client.Watch(ctx, &infrav1.RackstrapMachineList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return err
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		m, ok := e.Object.(*infrav1.RackstrapMachine)
		if !ok {
			return errors.New("the watch ended")
		}
		w.saw(m, e.Type == watch.Deleted)
	}
	return errors.New("the watch ended")
}

// relist forgets what is gone before it looks at what is there.
func (w *witness) relist(items []infrav1.RackstrapMachine) {
	there := map[string]bool{}
	for _, m := range items {
		there[string(m.UID)] = m.DeletionTimestamp.IsZero()
	}
	w.mu.Lock()
	for uid := range w.live {
		if !there[uid] {
			delete(w.live, uid)
		}
	}
	w.mu.Unlock()
	for i := range items {
		w.saw(&items[i], false)
	}
}

func (w *witness) saw(m *infrav1.RackstrapMachine, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid, claim := string(m.UID), m.Spec.ClaimID
	if claim != "" {
		if other, seen := w.claims[claim]; seen && other != m.Name {
			w.against = append(w.against, fmt.Sprintf("%s and %s have the claim %s", m.Name, other, claim))
		}
		w.claims[claim] = m.Name
	}
	if gone || !m.DeletionTimestamp.IsZero() {
		delete(w.live, uid)
		if _, known := w.ended[claim]; claim != "" && !known && !m.DeletionTimestamp.IsZero() {
			w.ended[claim] = m.DeletionTimestamp.Time
		}
		return
	}
	w.live[uid] = m
	for _, o := range w.live {
		if o.UID != m.UID && m.Status.Hardware != nil && o.Status.Hardware != nil && o.Status.Hardware.UID == m.Status.Hardware.UID {
			w.against = append(w.against, fmt.Sprintf("%s and %s both have the Hardware %s", m.Name, o.Name, m.Status.Hardware.Name))
		}
	}
}

// killer ends and starts what is under test.
type killer struct {
	s   *suite.Suite
	r   *rand.Rand
	did map[string]int
}

// kill ends one of the three, and starts it again.
func (k *killer) kill() {
	s := k.s
	s.Helper()
	// While the API server is away nothing is made or deleted, so it is the rarest.
	what := []string{suite.Provider, suite.Provider, "the appliance", "the appliance", kube.APIServer}[k.r.IntN(5)]
	k.did[what]++
	if what == "the appliance" {
		if err := errors.Join(s.Appliance.Kill(), s.Appliance.Start(s.Context())); err != nil {
			s.Fatal(err)
		}
		return
	}
	if err := s.Plane.Kill(what); err != nil {
		s.Fatal(err)
	}
	if err := s.Plane.Restart(s.Context(), what); err != nil {
		s.Fatal(err)
	}
}

// revive starts what ended by itself, as a node would: a manager that cannot reach the
// API server for long gives up.
func (k *killer) revive() {
	k.s.Helper()
	for _, name := range []string{suite.Provider, "capi-core", "capi-bootstrap", "capi-control-plane"} {
		if k.s.Plane.PID(name) != 0 {
			continue
		}
		k.did[name+" by itself"]++
		if err := k.s.Plane.Restart(k.s.Context(), name); err != nil {
			k.s.Fatal(err)
		}
	}
}

// operator changes what is wanted, again and again.
type operator struct {
	s    *suite.Suite
	r    *rand.Rand
	did  map[string]int
	mark int
}

// until asks until there is an answer or ctx ends.
func (o *operator) until(ctx context.Context, ask func(context.Context) error) error {
	for {
		err := ask(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// run does something about every second.
func (o *operator) run(ctx context.Context) {
	for ctx.Err() == nil {
		what := []string{"scale", "scale", "scale", "delete", "replace"}[o.r.IntN(5)]
		name := []string{"c1", "c2"}[o.r.IntN(2)]
		replicas, nth := o.r.IntN(6), o.r.IntN(6)
		if err := o.until(ctx, func(ctx context.Context) error { return o.change(ctx, what, name, replicas, nth) }); err == nil {
			o.did[what]++
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(200+o.r.IntN(1000)) * time.Millisecond):
		}
	}
}

func (o *operator) change(ctx context.Context, what, name string, replicas, nth int) error {
	key := client.ObjectKey{Namespace: "default", Name: name}
	if what == "delete" {
		var all clusterv1.MachineList
		if err := o.s.Client.List(ctx, &all, client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil || len(all.Items) == 0 {
			return err
		}
		return client.IgnoreNotFound(o.s.Client.Delete(ctx, &all.Items[nth%len(all.Items)]))
	}
	var md clusterv1.MachineDeployment
	if err := o.s.Client.Get(ctx, key, &md); err != nil {
		return err
	}
	if what == "replace" {
		o.mark++
		template := fmt.Sprintf("t-%d", o.mark)
		if err := o.s.Plane.Apply(ctx, templateYAML(template)); err != nil {
			return err
		}
		md.Spec.Template.Spec.InfrastructureRef.Name = template
		return o.s.Client.Update(ctx, &md)
	}
	n := int32(replicas)
	md.Spec.Replicas = &n
	return o.s.Client.Update(ctx, &md)
}

// TestKills: the provider, the API server and the appliance are killed again and again
// while machines of two clusters are made, scaled, replaced and deleted. No machine is
// ever two's, none that is in use is wiped or installed, and in the end everything is as
// it was asked for, with no claim left over. CAPI_KILLS says how often, CAPI_SEED which.
func TestKills(t *testing.T) { // not parallel: what is under test needs the processors
	kills, seed := number(t, "CAPI_KILLS", 15), uint64(number(t, "CAPI_SEED", 20261121))
	t.Logf("%d kills, CAPI_SEED=%d", kills, seed)
	s := suite.New(t, suite.Options{Machines: 14, CAPI: true, OS: idle, ActionTime: 100 * time.Millisecond})
	s.Apply(clusterYAML("c1", 10) + clusterYAML("c2", 11) + templateYAML("t-0") + deploymentYAML("c1", "t-0", 4) + deploymentYAML("c2", "t-0", 3))
	w := &witness{s: s, live: map[string]*infrav1.RackstrapMachine{}, ended: map[string]time.Time{}, claims: map[string]string{}}
	o := &operator{s: s, r: rand.New(rand.NewPCG(seed, 1)), did: map[string]int{}}
	k := &killer{s: s, r: rand.New(rand.NewPCG(seed, 2)), did: map[string]int{}}
	ctx, stop := context.WithCancel(t.Context())
	watching, over := context.WithCancel(t.Context())
	var work, look sync.WaitGroup
	look.Go(func() { w.run(watching) })
	work.Go(func() { o.run(ctx) })
	defer func() { stop(); over(); work.Wait(); look.Wait() }()
	began := time.Now()
	for range kills {
		time.Sleep(time.Duration(k.r.IntN(2500)) * time.Millisecond) // the random point
		k.revive()
		k.kill()
	}
	stop()
	work.Wait()
	t.Logf("%v killed and %v done in %v", k.did, o.did, time.Since(began).Round(time.Second))
	k.revive()
	replicas := map[string]int{"c1": 5, "c2": 2}
	total := 0
	for name, n := range replicas {
		total += n
		s.Eventually("the last change is taken", func() error { return o.change(t.Context(), "scale", name, n, 0) })
	}
	s.Within(6*time.Minute, "everything is as wanted", func() error {
		k.revive()
		return provisioned(s, total)
	})
	s.Eventually("no claim is left over", func() error { return held(s, total) })
	for name := range replicas {
		if err := s.Client.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	s.Within(6*time.Minute, "all machines are back", func() error { return errors.Join(gone(s, "c1"), gone(s, "c2"), s.AllAvailable(), held(s, 0)) })
	over()
	look.Wait()
	w.judge(t)
}

// held is an error unless there are so many claims, each with an object of its own.
func held(s *suite.Suite, n int) error {
	yes := true
	claims, err := s.API.ListClaims(s.Context(), clientapi.ClaimFilter{Active: &yes})
	if err != nil {
		return err
	}
	var list infrav1.RackstrapMachineList
	if err := s.Client.List(s.Context(), &list); err != nil {
		return err
	}
	objects := map[string]string{}
	for _, m := range list.Items {
		objects[m.Spec.ClaimID] = m.Name
	}
	for _, c := range claims {
		if objects[c.Meta.Name] == "" {
			err = errors.Join(err, fmt.Errorf("the claim %s of %s has no RackstrapMachine", c.Meta.Name, c.Status.Hardware))
		}
	}
	if len(claims) != n {
		err = errors.Join(err, fmt.Errorf("%d claims are held, want %d", len(claims), n))
	}
	return err
}

// judge compares what was seen with the appliance's claims and the machines' disks.
func (w *witness) judge(t *testing.T) {
	t.Helper()
	for _, a := range w.against {
		t.Error(a)
	}
	claims, err := w.s.API.ListClaims(t.Context(), clientapi.ClaimFilter{})
	if err != nil {
		t.Fatal(err)
	}
	byName, by := map[string]hardware.Claim{}, map[string][]hardware.Claim{}
	unseen := 0
	for _, c := range claims {
		if c.Status.Hardware == "" {
			continue // its id was only barred
		}
		byName[c.Meta.Name] = c
		for _, o := range by[c.Status.Hardware] {
			if c.Status.Claimed.Before(o.Status.Ended) && o.Status.Claimed.Before(c.Status.Ended) {
				t.Errorf("%s had the claims %s and %s at once", c.Status.Hardware, c.Meta.Name, o.Meta.Name)
			}
		}
		by[c.Status.Hardware] = append(by[c.Status.Hardware], c)
		switch deleted, known := w.ended[c.Meta.Name]; {
		case !known:
			unseen++ // while the API server was away
		case c.Status.Ended.Before(deleted):
			t.Errorf("the claim %s ended at %v, and its RackstrapMachine was deleted at %v", c.Meta.Name, c.Status.Ended, deleted)
		}
	}
	all, err := w.s.API.Workflows.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	claimOf := map[string]string{} // by workflow
	for _, x := range all {
		claimOf[x.Meta.UID] = strings.TrimPrefix(x.Meta.Name, "capi-")
	}
	installs, over := map[string]int{}, 0
	for _, x := range w.s.Rack.Writes() {
		if x.What == workflow.KindImageWrite {
			installs[x.Workflow]++
		}
		if x.Over == nil || x.Workflow == x.Over.Workflow && x.Over.Boots == 0 {
			continue // the next action of the same install
		}
		over++
		id := claimOf[x.Over.Workflow]
		c, known := byName[id]
		if !known {
			t.Errorf("%s: a system of workflow %s and claim %q, which nobody knows, was on %s", x.Machine, x.Over.Workflow, id, x.Disk)
			continue
		}
		if c.Status.Ended.IsZero() || c.Status.Ended.After(x.At) {
			t.Errorf("%s: %s by workflow %s at %v over the system of the claim %s, which ended at %v", x.Machine, x.What, x.Workflow, x.At, id, c.Status.Ended)
		}
	}
	twice := 0
	for _, n := range installs {
		if n > 1 {
			twice++
		}
	}
	t.Logf("%d claims, %d RackstrapMachines, %d installs of which %d wrote the image again after a broken attempt, %d writes over a system that had been in use; of %d claims the deletion was not seen",
		len(byName), len(w.claims), len(installs), twice, over, unseen)
	if over == 0 || len(w.claims) < len(byName) {
		t.Error("too little was seen to judge by")
	}
}
