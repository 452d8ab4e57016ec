package machine_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/api/capi/suite"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// asksFor reports whether a request is the step of a machine. What it says of the
// machine is the owner of the claim, or the token in its bootstrap data.
func asksFor(r suite.Request, step, machine string) bool {
	path := map[string]string{"claim": "/claims", "install": "/provision", "release": "/release"}[step]
	return r.Method == http.MethodPost && strings.HasSuffix(r.Path, path) &&
		(strings.Contains(r.Body, "default/c1/"+machine+`"`) || strings.Contains(r.Body, "t0ken-of-"+machine+`]`))
}

// once is f for its first n calls, and no fault after them.
func once(n int, f suite.Fault) func() suite.Fault {
	return func() suite.Fault {
		if n--; n < 0 {
			return suite.Fault{}
		}
		return f
	}
}

// Between the provider and the appliance is a proxy that answers 500 twice, cuts the
// connection after the request was acted upon, or never answers: at the claim, the
// install and the release, each of a machine of its own. The events say it in words, and
// without anybody's help each machine is claimed, installed and released once.
func TestFaultsOnTheWay(t *testing.T) {
	t.Parallel()
	l := start(t, suite.Options{Machines: 9, Proxy: true})
	steps := []string{"claim", "install", "release"}
	faults := map[string]struct {
		what suite.Fault
		n    int
		says string
	}{
		"refused": {suite.Fault{Status: http.StatusInternalServerError}, 2, "500"},
		"lost":    {suite.Fault{Lose: true}, 1, "the appliance does not answer"},
		"hangs":   {suite.Fault{Hang: true}, 1, "the appliance takes too long to answer"},
	}
	says, left := map[string]string{}, map[string]func() suite.Fault{}
	for _, step := range steps {
		for kind, f := range faults {
			name := step + "-" + kind
			says[name], left[name] = f.says, once(f.n, f.what)
		}
	}
	var mu sync.Mutex
	l.Proxy.Judge(func(r suite.Request) suite.Fault {
		mu.Lock()
		defer mu.Unlock()
		for name, fault := range left {
			if step, _, _ := strings.Cut(name, "-"); asksFor(r, step, name) {
				return fault()
			}
		}
		return suite.Fault{}
	})
	for name := range says {
		l.machine(name, nil)
	}
	for name := range says {
		l.ready(name, clusterv1.ReadyReason)
	}
	for name := range says {
		l.remove(name)
	}
	for name := range says {
		l.gone(name)
	}
	l.Eventually("everything is available", l.AllAvailable)
	var events eventsv1.EventList
	l.must(l.Client.List(t.Context(), &events, ctrlclient.InNamespace("default")))
	for name, want := range says {
		if !slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool { return e.Regarding.Name == name && strings.Contains(e.Note, want) }) {
			t.Errorf("no event of %s says %q", name, want)
		}
	}
	l.onceEach(9)
}

// onceEach checks that n machines were each claimed, installed and released once.
func (l *live) onceEach(n int) {
	l.Helper()
	owners := map[string]int{}
	claims := l.claims(false)
	for _, c := range claims {
		owners[c.Spec.Owner]++
	}
	if len(claims) != n || len(owners) != n || len(l.claims(true)) != 0 {
		l.Errorf("%d claims have ended, of %v, and %d have not", len(claims), owners, len(l.claims(true)))
	}
	list, err := l.API.Workflows.List(l.Context())
	l.must(err)
	installs := map[string]int{}
	for _, w := range list {
		if w.Spec.Purpose == workflow.PurposeInstall {
			installs[w.Spec.Claim]++
		}
	}
	releases, _, err := l.API.ListEvents(l.Context(), client.Filter{Reason: hardware.ReasonClaimEnded, Limit: 1000})
	l.must(err)
	if len(releases) != n {
		l.Errorf("%d releases, want %d", len(releases), n)
	}
	for _, c := range claims {
		if installs[c.Meta.Name] != 1 {
			l.Errorf("the claim of %s has %d installs", c.Spec.Owner, installs[c.Meta.Name])
		}
	}
}

// The provider is killed when it asks for a claim, an install or a release: before the
// appliance gets the request, and when it has acted upon it and nobody will read the
// answer. Each happens once.
func TestNoSecondClaimOverKills(t *testing.T) {
	t.Parallel()
	l := start(t, suite.Options{Machines: 6, Proxy: true})
	killed := make(chan error, 1)
	kill := func() { killed <- l.Plane.Kill(suite.Provider) }
	points := []struct {
		step string
		when suite.Fault
	}{
		{"claim", suite.Fault{Before: kill, Status: http.StatusBadGateway}},
		{"claim", suite.Fault{After: kill}},
		{"install", suite.Fault{Before: kill, Status: http.StatusBadGateway}},
		{"install", suite.Fault{After: kill}},
		{"release", suite.Fault{Before: kill, Status: http.StatusBadGateway}},
		{"release", suite.Fault{After: kill}},
	}
	for i, p := range points {
		name := fmt.Sprintf("w%d", i)
		var mu sync.Mutex
		fault := once(1, p.when)
		l.Proxy.Judge(func(r suite.Request) suite.Fault {
			mu.Lock()
			defer mu.Unlock()
			if asksFor(r, p.step, name) {
				return fault()
			}
			return suite.Fault{}
		})
		l.machine(name, nil)
		if p.step == "release" {
			l.ready(name, clusterv1.ReadyReason)
			l.remove(name)
		}
		select {
		case err := <-killed:
			l.must(err)
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		l.RestartProvider()
		if p.step == "release" {
			l.gone(name)
			continue
		}
		o := l.ready(name, clusterv1.ReadyReason)
		if claims := l.claims(true); len(claims) != 1 || claims[0].Meta.Name != o.Spec.ClaimID {
			t.Errorf("killed at %d: claims %+v, want %s", i, claims, o.Spec.ClaimID)
		}
		l.remove(name)
		l.gone(name)
	}
	l.onceEach(len(points))
}
