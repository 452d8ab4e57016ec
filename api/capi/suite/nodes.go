package suite

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/rackstrap/rackstrap/deploy/lab/sim"
)

// Nodes are what simulated machines become when they boot what kubeadm's data made of
// them: nodes of workload clusters, whose API servers and etcds are real. The control
// plane machines of a cluster share one API server, which runs while one of them does.
type Nodes struct {
	s *Suite

	mu       sync.Mutex
	clusters map[string]*workload // by the endpoint, host and port
	disks    map[string]*member   // what kubeadm left on a disk, by the install's workflow
	count    int
}

// member is a machine that joined a cluster: what is on its disk.
type member struct {
	in      *workload
	node    *node
	control bool
}

// boot is what the machine's system does until the power goes.
func (n *Nodes) boot(ctx context.Context, m *sim.Machine, sys *sim.System) {
	if err := n.run(ctx, m, sys); err != nil && ctx.Err() == nil {
		n.s.Logf("%s: %v", m.Name(), err)
		<-ctx.Done()
	}
}

func (n *Nodes) run(ctx context.Context, m *sim.Machine, sys *sim.System) error {
	n.mu.Lock()
	on := n.disks[sys.Workflow]
	n.mu.Unlock()
	if on == nil {
		var err error
		if on, err = n.first(ctx, m, sys); err != nil {
			return err
		}
		n.mu.Lock()
		if n.disks == nil {
			n.disks = map[string]*member{}
		}
		n.disks[sys.Workflow] = on
		n.mu.Unlock()
	} else if on.control {
		if err := on.in.enter(ctx, m.Name()); err != nil {
			return err
		}
	}
	if on.control {
		defer on.in.leave(m.Name())
	}
	return on.node.run(ctx)
}

// first is the first boot, with cloud-init and kubeadm.
func (n *Nodes) first(ctx context.Context, m *sim.Machine, sys *sim.System) (*member, error) {
	u, err := readUserData(sys)
	if err != nil {
		return nil, err
	}
	var on *member
	switch {
	case u.runs("kubeadm init "):
		on, err = n.init(ctx, m, sys, u)
	case u.runs("kubeadm join "):
		on, err = n.join(ctx, m, sys, u)
	default:
		err = errors.New("the user-data runs no kubeadm")
	}
	if err != nil {
		return nil, err
	}
	return on, n.phoneHome(ctx, sys, u)
}

// init is kubeadm init: a new cluster.
func (n *Nodes) init(ctx context.Context, m *sim.Machine, sys *sim.System, u userData) (*member, error) {
	text, ok := u.file("/run/kubeadm/kubeadm.yaml")
	if !ok {
		return nil, errors.New("kubeadm init has no configuration")
	}
	k, err := readKubeadm(text)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.count++
	dir := filepath.Join(n.s.dir, "w"+strconv.Itoa(n.count))
	old := n.clusters[k.ControlPlaneEndpoint]
	n.mu.Unlock()
	if old != nil {
		if err := old.retire(); err != nil {
			return nil, err
		}
	}
	w, err := startWorkload(ctx, n.s, dir, &u, &k)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	if n.clusters == nil {
		n.clusters = map[string]*workload{}
	}
	n.clusters[k.ControlPlaneEndpoint] = w
	n.mu.Unlock()
	if err := w.enter(ctx, m.Name()); err != nil {
		return nil, err
	}
	x := n.node(ctx, m, sys, &k, w, true)
	if x.config, err = w.signed(k.NodeRegistration.Name); err != nil {
		return nil, err
	}
	return &member{w, x, true}, nil
}

// join is kubeadm join: by the token in the data, which the API server judges.
func (n *Nodes) join(ctx context.Context, m *sim.Machine, sys *sim.System, u userData) (*member, error) {
	text, ok := u.file("/run/kubeadm/kubeadm-join-config.yaml")
	if !ok {
		return nil, errors.New("kubeadm join has no configuration")
	}
	k, err := readKubeadm(text)
	if err != nil {
		return nil, err
	}
	endpoint := k.Discovery.BootstrapToken.APIServerEndpoint
	n.mu.Lock()
	w := n.clusters[endpoint]
	n.mu.Unlock()
	if w == nil {
		return nil, fmt.Errorf("kubeadm join: nobody answers at %s", endpoint)
	}
	x := n.node(ctx, m, sys, &k, w, k.ControlPlane != nil)
	if x.config, err = w.bootstrap(ctx, &k); err != nil {
		return nil, err
	}
	if x.control {
		if err := w.enter(ctx, m.Name()); err != nil {
			return nil, err
		}
	}
	return &member{w, x, x.control}, nil
}

func (n *Nodes) node(ctx context.Context, m *sim.Machine, sys *sim.System, k *kubeadm, w *workload, control bool) *node {
	return &node{
		w: w, control: control, name: k.NodeRegistration.Name, address: m.Addr().String(), providerID: k.kubelet("provider-id"),
		labels: k.kubelet("node-labels"), taints: k.NodeRegistration.Taints, version: n.version(ctx, sys, w), machine: sys.InstanceID,
	}
}

// version is that of the kubelet in the image that was installed; where the image does
// not say, it is the cluster's.
func (n *Nodes) version(ctx context.Context, sys *sim.System, w *workload) string {
	images, err := n.s.API.Images.List(ctx)
	if err != nil {
		return w.version
	}
	for _, i := range images {
		for _, r := range i.Status.Renditions {
			if i.Spec.KubernetesVersion != "" && (strings.Contains(sys.Image, r.Digest) || r.Of(sys.Checksum)) {
				return i.Spec.KubernetesVersion
			}
		}
	}
	return w.version
}

// phoneHome calls where the data says so: vendor-data has it where the user-data is not
// ours to write into.
func (n *Nodes) phoneHome(ctx context.Context, sys *sim.System, u userData) error {
	url := u.PhoneHome.URL
	if url == "" && len(sys.VendorData) > 0 {
		v, err := readUserData(&sim.System{UserData: sys.VendorData})
		if err != nil {
			return err
		}
		url = v.PhoneHome.URL
	}
	if url == "" {
		return nil
	}
	rq, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	rs, err := n.s.Rack.Namespace().HTTPClient().Do(rq)
	if err != nil {
		return err
	}
	return rs.Body.Close()
}

// Workload is the control plane of a workload cluster, by its endpoint: HOST:PORT; nil
// where no machine ran kubeadm init for it.
func (n *Nodes) Workload(endpoint string) *Workload {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.clusters[endpoint]
	if w == nil {
		return nil
	}
	return &w.Workload
}

func (n *Nodes) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.clusters {
		if err := w.plane.Stop(); err != nil {
			n.s.Error(err)
		}
	}
}
