package suite

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// node does what a kubelet tells the API server, with the rights of one.
type node struct {
	w          *workload
	config     *rest.Config
	control    bool
	name       string
	address    string
	providerID string
	labels     string // of --node-labels
	taints     []taint
	version    string
	machine    string // instance id
}

// beat is the time between two signs of life.
const beat = 4 * time.Second

// The label and the taint that kubeadm gives control plane nodes.
const controlPlaneRole = "node-role.kubernetes.io/control-plane"

func base64Std(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// run registers the node and gives signs of life until ctx ends. An API server that does
// not answer is asked again.
func (x *node) run(ctx context.Context) error {
	c, err := kubernetes.NewForConfig(x.config)
	if err != nil {
		return err
	}
	tick := time.NewTicker(beat)
	defer tick.Stop()
	registered := false
	for {
		if !registered {
			if err := x.register(ctx, c); err != nil && ctx.Err() == nil {
				x.w.logf("node %s: %v", x.name, err)
			} else {
				registered = true
			}
		}
		if registered {
			// A Node that somebody deleted is not made again, as with a kubelet.
			if err := x.alive(ctx, c); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
				x.w.logf("node %s: %v", x.name, err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (x *node) register(ctx context.Context, c kubernetes.Interface) error {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: x.name, Labels: map[string]string{
			corev1.LabelHostname: x.name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}},
		Spec: corev1.NodeSpec{ProviderID: x.providerID},
	}
	for pair := range strings.SplitSeq(x.labels, ",") {
		if k, v, ok := strings.Cut(pair, "="); ok {
			n.Labels[k] = v
		}
	}
	for _, t := range x.taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	_, err := c.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := x.alive(ctx, c); err != nil || !x.control {
		return err
	}
	return x.mark(ctx)
}

// alive writes the status and the Lease.
func (x *node) alive(ctx context.Context, c kubernetes.Interface) error {
	n, err := c.CoreV1().Nodes().Get(ctx, x.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("90Gi"),
	}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: x.address}, {Type: corev1.NodeHostName, Address: x.name}}
	n.Status.NodeInfo = corev1.NodeSystemInfo{
		MachineID: x.machine, SystemUUID: x.machine, BootID: x.machine, KubeletVersion: x.version,
		OperatingSystem: "linux", Architecture: "amd64", ContainerRuntimeVersion: "simulated://1", KernelVersion: "6.1.0-sim", OSImage: "Simulated Linux",
	}
	now := metav1.Now()
	for _, want := range []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID"},
	} {
		want.LastHeartbeatTime, want.LastTransitionTime = now, now
		setNodeCondition(&n.Status, want)
	}
	// As the kubelet does: a whole object would also say what others changed meanwhile.
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"capacity": capacity, "allocatable": capacity, "addresses": n.Status.Addresses, "nodeInfo": n.Status.NodeInfo, "conditions": n.Status.Conditions,
	}})
	if err != nil {
		return err
	}
	if _, err := c.CoreV1().Nodes().PatchStatus(ctx, x.name, patch); err != nil {
		return err
	}
	return x.renew(ctx, c, n)
}

func setNodeCondition(s *corev1.NodeStatus, want corev1.NodeCondition) {
	for i := range s.Conditions {
		if have := &s.Conditions[i]; have.Type == want.Type {
			if have.Status == want.Status {
				want.LastTransitionTime = have.LastTransitionTime
			}
			*have = want
			return
		}
	}
	s.Conditions = append(s.Conditions, want)
}

func (x *node) renew(ctx context.Context, c kubernetes.Interface, n *corev1.Node) error {
	leases := c.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NowMicro()
	l, err := leases.Get(ctx, x.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: x.name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &x.name, LeaseDurationSeconds: ptr.To[int32](16), RenewTime: &now},
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	l.Spec.RenewTime = &now
	_, err = leases.Update(ctx, l, metav1.UpdateOptions{})
	return err
}

// mark does what kubeadm does with a control plane node, and shows its static pods as
// the kubelet does. A kubelet may not label itself so: the administrator does.
func (x *node) mark(ctx context.Context) error {
	c, err := kubernetes.NewForConfig(x.w.config)
	if err != nil {
		return err
	}
	n, err := c.CoreV1().Nodes().Get(ctx, x.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	n.Labels[controlPlaneRole] = ""
	if x.taints == nil {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: controlPlaneRole, Effect: corev1.TaintEffectNoSchedule})
	}
	if _, err := c.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{}); err != nil {
		return err
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if err := x.static(ctx, c, name); err != nil {
			return fmt.Errorf("static pod %s: %w", name, err)
		}
	}
	return nil
}

func (x *node) static(ctx context.Context, c kubernetes.Interface, component string) error {
	pods := c.CoreV1().Pods(metav1.NamespaceSystem)
	p, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: component + "-" + x.name, Labels: map[string]string{"component": component, "tier": "control-plane"},
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: x.machine},
		},
		Spec: corev1.PodSpec{
			NodeName: x.name, HostNetwork: true, Containers: []corev1.Container{{Name: component, Image: "registry.k8s.io/" + component + ":" + x.version}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		p, err = pods.Get(ctx, component+"-"+x.name, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	now := metav1.Now()
	p.Status.Phase, p.Status.StartTime, p.Status.HostIP, p.Status.PodIP = corev1.PodRunning, &now, x.address, x.address
	p.Status.Conditions = nil
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: component, Image: p.Spec.Containers[0].Image, Ready: true, Started: ptr.To(true),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
	}}
	_, err = pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
	return err
}
