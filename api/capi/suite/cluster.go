package suite

import (
	"errors"
	"fmt"
	"sync/atomic"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/deploy/lab/kube"
)

// Cluster describes a kubeadm cluster on machines of the rack. What is zero is chosen.
type Cluster struct {
	Name         string
	Namespace    string // default
	ControlPlane int    // 1
	Workers      int
	Version      string // KubernetesVersion
	Image        string // a name; looked up by Version where empty
	Host         string // of the endpoint; a free one of the rack's network
}

// endpoints counts those that were given away; each rack has its own network, so the
// tests of one process may share them.
var endpoints atomic.Int32

func (c *Cluster) complete() {
	if c.Namespace == "" {
		c.Namespace = "default"
	}
	if c.ControlPlane == 0 {
		c.ControlPlane = 1
	}
	if c.Version == "" {
		c.Version = KubernetesVersion
	}
	if c.Host == "" {
		c.Host = FreeHost()
	}
}

// FreeHost is an address for the endpoint of a control plane, where the simulated nodes
// can serve it. It is above those of the machines.
func FreeHost() string {
	n := endpoints.Add(1)
	return fmt.Sprintf("10.77.%d.%d", 200+n/200%50, 10+n%200)
}

// Endpoint is its control plane's, as Nodes.Workload is asked.
func (c *Cluster) Endpoint() string { return c.Host + ":6443" }

// ControlPlaneName is that of its KubeadmControlPlane; WorkersName is that of its
// MachineDeployment.
func (c *Cluster) ControlPlaneName() string { return c.Name + "-cp" }

// WorkersName is that of its MachineDeployment.
func (c *Cluster) WorkersName() string { return c.Name + "-md" }

// ExternalEtcd are the Secrets of a cluster whose etcd is not kubeadm's. That of the
// simulated nodes is none that anybody else could ask: it is the API server's own.
func ExternalEtcd(namespace, cluster string) (string, error) {
	ca, err := kube.NewAuthority("etcd")
	if err != nil {
		return "", err
	}
	pair, err := ca.Client("apiserver-etcd-client")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: %[1]s-etcd, namespace: %[2]s, labels: {cluster.x-k8s.io/cluster-name: %[1]s, clusterctl.cluster.x-k8s.io/move: ""}}
type: cluster.x-k8s.io/secret
data: {tls.crt: %[3]s}
---
apiVersion: v1
kind: Secret
metadata: {name: %[1]s-apiserver-etcd-client, namespace: %[2]s, labels: {cluster.x-k8s.io/cluster-name: %[1]s, clusterctl.cluster.x-k8s.io/move: ""}}
type: cluster.x-k8s.io/secret
data: {tls.crt: %[4]s, tls.key: %[5]s}
`, cluster, namespace, base64Std(ca.CertPEM), base64Std(pair.Cert), base64Std(pair.Key)), nil
}

// YAML are the cluster's documents. It writes what was chosen into c.
func (c *Cluster) YAML() (string, error) {
	c.complete()
	etcd, err := ExternalEtcd(c.Namespace, c.Name)
	image := "lookup: {os: debian, version: \"12\"}"
	if c.Image != "" {
		image = "name: " + c.Image
	}
	return etcd + fmt.Sprintf(`---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  clusterNetwork: {pods: {cidrBlocks: [10.244.0.0/16]}, services: {cidrBlocks: [10.97.0.0/16]}}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: RackstrapCluster, name: %[1]s}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: %[1]s-cp}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: RackstrapCluster
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  controlPlaneEndpoint: {host: %[3]s, port: 6443}
  appliance: {secretRef: {name: %[4]s}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata:
  name: %[1]s-cp
  namespace: %[2]s
  annotations: {controlplane.cluster.x-k8s.io/skip-coredns: "", controlplane.cluster.x-k8s.io/skip-kube-proxy: ""}
spec:
  replicas: %[5]d
  version: %[7]s
  machineTemplate:
    spec:
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: RackstrapMachineTemplate, name: %[1]s}
  kubeadmConfigSpec:
    clusterConfiguration:
      etcd: {external: {endpoints: ["https://127.0.0.1:2379"], caFile: /etc/kubernetes/pki/etcd/ca.crt, certFile: /etc/kubernetes/pki/apiserver-etcd-client.crt, keyFile: /etc/kubernetes/pki/apiserver-etcd-client.key}}
    initConfiguration:
      nodeRegistration: &registration
        name: "{{ ds.meta_data.local_hostname }}"
        kubeletExtraArgs: [{name: provider-id, value: "{{ ds.meta_data.provider_id }}"}]
    joinConfiguration:
      nodeRegistration: *registration
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: RackstrapMachineTemplate
metadata: {name: %[1]s, namespace: %[2]s}
spec: {template: {spec: {image: {%[8]s}, disk: smallest}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: %[1]s-md, namespace: %[2]s}
spec:
  clusterName: %[1]s
  replicas: %[6]d
  selector: {matchLabels: {}}
  template:
    spec:
      clusterName: %[1]s
      version: %[7]s
      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: %[1]s}}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: RackstrapMachineTemplate, name: %[1]s}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  template:
    spec:
      joinConfiguration:
        nodeRegistration:
          name: "{{ ds.meta_data.local_hostname }}"
          kubeletExtraArgs: [{name: provider-id, value: "{{ ds.meta_data.provider_id }}"}]
`, c.Name, c.Namespace, c.Host, Secret, c.ControlPlane, c.Workers, c.Version, image), err
}

// Create makes the cluster and waits until all its machines run.
func (m *Management) Create(c *Cluster) {
	m.s.Helper()
	text, err := c.YAML()
	if err != nil {
		m.s.Fatal(err)
	}
	m.Apply(text)
	m.s.Eventually("all machines of "+c.Name+" run", func() error { return m.Running(*c) })
}

// Machines are the Cluster API's of a cluster.
func (m *Management) Machines(c Cluster) ([]clusterv1.Machine, error) {
	var list clusterv1.MachineList
	err := m.Client.List(m.s.Context(), &list, ctrlclient.InNamespace(c.Namespace), ctrlclient.MatchingLabels{clusterv1.ClusterNameLabel: c.Name})
	return list.Items, err
}

// Running is an error unless the cluster has as many machines as c says, each of its
// version, with a node that is ready.
func (m *Management) Running(c Cluster) error {
	list, err := m.Machines(c)
	if err != nil {
		return err
	}
	if want := c.ControlPlane + c.Workers; len(list) != want {
		err = fmt.Errorf("%d machines of %d", len(list), want)
	}
	for i := range list {
		x := &list[i]
		ready := ""
		for _, d := range x.Status.Conditions {
			if d.Type == clusterv1.MachineNodeReadyCondition {
				ready = string(d.Status)
			}
		}
		if x.Status.Phase != "Running" || !x.Status.NodeRef.IsDefined() || ready != "True" || x.Spec.Version != c.Version {
			err = errors.Join(err, fmt.Errorf("%s is %s, of %s, its node %q ready: %q", x.Name, x.Status.Phase, x.Spec.Version, x.Status.NodeRef.Name, ready))
		}
	}
	return err
}

// Delete deletes the cluster and waits until nothing of it is left.
func (m *Management) Delete(c Cluster) {
	m.s.Helper()
	obj := new(clusterv1.Cluster)
	obj.Namespace, obj.Name = c.Namespace, c.Name
	if err := m.Client.Delete(m.s.Context(), obj); err != nil {
		m.s.Fatal(err)
	}
	m.s.Eventually(c.Name+" is gone", func() error {
		err := m.Get(c.Namespace, c.Name, new(clusterv1.Cluster))
		if err == nil {
			list, _ := m.Machines(c)
			return fmt.Errorf("it is there, with %d machines", len(list))
		}
		return ctrlclient.IgnoreNotFound(err)
	})
}
