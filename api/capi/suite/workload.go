package suite

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/deploy/lab/kube"
)

// Workload is the control plane of a workload cluster.
type Workload struct {
	Plane  *kube.Plane
	Client ctrlclient.WithWatch
}

type workload struct {
	Workload
	plane   *kube.Plane
	logf    func(format string, args ...any)
	config  *rest.Config // the administrator's
	version string       // of kubeadm's data

	mu sync.Mutex
	on map[string]bool // control plane machines that run
}

// controllers of a workload cluster: nodes that are silent become NotReady, kubelets get
// their certificates, tokens end.
func controllers() []string {
	return append(kube.Management(), "node-lifecycle-controller", "certificatesigningrequest-approving-controller", "certificatesigningrequest-signing-controller", "token-cleaner-controller")
}

// startWorkload starts what kubeadm init starts, with the certificates of its data, and
// leaves in the cluster what kubeadm leaves there for those who join.
func startWorkload(ctx context.Context, s *Suite, dir string, u *userData, k *kubeadm) (*workload, error) {
	endpoint, err := netip.ParseAddrPort(k.ControlPlaneEndpoint)
	if err != nil {
		return nil, fmt.Errorf("controlPlaneEndpoint: %w (a simulated control plane has an address)", err)
	}
	pki := map[string][]byte{}
	for _, name := range []string{"ca.crt", "ca.key", "sa.pub", "sa.key", "front-proxy-ca.crt", "front-proxy-ca.key", "etcd/ca.crt"} {
		text, ok := u.file("/etc/kubernetes/pki/" + name)
		if !ok {
			return nil, fmt.Errorf("kubeadm init: the user-data has no %s", name)
		}
		pki[name] = []byte(text)
	}
	ca, err := kube.ReadAuthority(pki["ca.crt"], pki["ca.key"])
	if err != nil {
		return nil, err
	}
	p, err := kube.Start(ctx, kube.Options{
		Dir: dir, Bin: s.bin.Tools, Namespace: s.Rack.Namespace(), Address: endpoint.Addr(), Port: int(endpoint.Port()),
		Identity: &kube.Identity{CA: ca, TokenKey: pki["sa.key"], TokenPub: pki["sa.pub"]}, Services: k.Networking.ServiceSubnet,
		Controllers: controllers(), ControllerFlags: []string{"--node-monitor-period=2s", "--node-monitor-grace-period=16s", "--node-startup-grace-period=16s"},
	})
	if err != nil {
		return nil, err
	}
	w := &workload{Workload: Workload{Plane: p}, plane: p, logf: s.Logf, version: k.KubernetesVersion, on: map[string]bool{}}
	if w.config, w.Client, err = connect(p); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	if err := p.Apply(ctx, leftovers(k, p.URL, ca.CertPEM)); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return w, nil
}

// leftovers is what kubeadm init uploads, as far as somebody reads it.
func leftovers(k *kubeadm, url string, ca []byte) string {
	indent := func(s string, n int) string {
		pad := strings.Repeat(" ", n)
		return pad + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+pad)
	}
	info := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster:\n    server: %s\n    certificate-authority-data: %s\n", url, base64Std(ca))
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: kubeadm-config, namespace: kube-system}
data:
  ClusterConfiguration: |
%s
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kubelet-config, namespace: kube-system}
data:
  kubelet: |
    apiVersion: kubelet.config.k8s.io/v1beta1
    kind: KubeletConfiguration
---
apiVersion: v1
kind: Namespace
metadata: {name: kube-public}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-info, namespace: kube-public}
data:
  kubeconfig: |
%s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "kubeadm:bootstrap-signer-clusterinfo", namespace: kube-public}
rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [cluster-info], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "kubeadm:bootstrap-signer-clusterinfo", namespace: kube-public}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "kubeadm:bootstrap-signer-clusterinfo"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:anonymous"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "kubeadm:nodes-kubeadm-config", namespace: kube-system}
rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [kubeadm-config, kubelet-config], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "kubeadm:nodes-kubeadm-config", namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "kubeadm:nodes-kubeadm-config"}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:bootstrappers:kubeadm:default-node-token"}
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:nodes"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "kubeadm:kubelet-bootstrap"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:node-bootstrapper"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:bootstrappers:kubeadm:default-node-token"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "kubeadm:node-autoapprove-bootstrap"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:certificates.k8s.io:certificatesigningrequests:nodeclient"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:bootstrappers:kubeadm:default-node-token"}]
`, indent(k.cluster, 4), indent(info, 4))
}

// enter says that a control plane machine runs; the first one starts the API server.
func (w *workload) enter(ctx context.Context, machine string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.on[machine] = true
	if w.plane.PID(kube.APIServer) != 0 {
		return nil
	}
	return errors.Join(w.plane.Restart(ctx, kube.APIServer), w.plane.Restart(ctx, kube.ControllerManager))
}

// leave says that it does not; with the last one the API server goes. The control
// plane's data stay with it.
func (w *workload) leave(machine string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.on, machine)
	if len(w.on) == 0 && w.plane.PID(kube.APIServer) != 0 {
		_ = errors.Join(w.plane.Kill(kube.ControllerManager), w.plane.Kill(kube.APIServer))
	}
}

// retire stops a cluster whose endpoint another one takes: a mistake while one of its
// machines runs.
func (w *workload) retire() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.on) > 0 {
		return fmt.Errorf("kubeadm init: the cluster of %v has this endpoint", w.on)
	}
	return w.plane.Stop()
}

// signed is the access of a kubelet whose certificate kubeadm init signs by itself.
func (w *workload) signed(name string) (*rest.Config, error) {
	pair, err := w.plane.Identity.CA.Client("system:node:"+name, "system:nodes")
	if err != nil {
		return nil, err
	}
	return w.as(w.plane.Identity.CA.CertPEM, func(c *rest.Config) { c.CertData, c.KeyData = pair.Cert, pair.Key }), nil
}

// as is a connection to the API server that trusts ca.
func (w *workload) as(ca []byte, who func(*rest.Config)) *rest.Config {
	c := &rest.Config{Host: w.plane.URL, Dial: w.plane.Dial, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	who(c)
	return c
}

// bootstrap does what kubeadm join and the kubelet's TLS bootstrap do: it trusts the
// authority whose hash the data have, reads kubeadm's configuration with the token, and
// has a certificate signed.
func (w *workload) bootstrap(ctx context.Context, k *kubeadm) (*rest.Config, error) {
	b := k.Discovery.BootstrapToken
	anyone := w.as(nil, func(c *rest.Config) { c.Insecure = true })
	open, err := kubernetes.NewForConfig(anyone)
	if err != nil {
		return nil, err
	}
	info, err := open.CoreV1().ConfigMaps("kube-public").Get(ctx, "cluster-info", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("kubeadm join: %w", err)
	}
	kc, err := clientcmd.Load([]byte(info.Data["kubeconfig"]))
	if err != nil {
		return nil, err
	}
	ca := kc.Clusters[""].CertificateAuthorityData
	if hash := publicKeyHash(ca); !slices.Contains(b.CACertHashes, hash) {
		return nil, fmt.Errorf("kubeadm join: the authority's hash is %s, the data have %v", hash, b.CACertHashes)
	}
	c, err := kubernetes.NewForConfig(w.as(ca, func(c *rest.Config) { c.BearerToken = b.Token }))
	if err != nil {
		return nil, err
	}
	if _, err := c.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{}); err != nil {
		return nil, fmt.Errorf("kubeadm join, with its token: %w", err)
	}
	cert, key, err := requestCertificate(ctx, c, k.NodeRegistration.Name)
	if err != nil {
		return nil, fmt.Errorf("kubeadm join, the kubelet's certificate: %w", err)
	}
	return w.as(ca, func(c *rest.Config) { c.CertData, c.KeyData = cert, key }), nil
}

func requestCertificate(ctx context.Context, c kubernetes.Interface, name string) (cert, key []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}}, k)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		return nil, nil, err
	}
	rq, err := c.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for len(rq.Status.Certificate) == 0 {
		select {
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("nobody signs it: %w", ctx.Err())
		case <-tick.C:
		}
		if rq, err = c.CertificatesV1().CertificateSigningRequests().Get(ctx, rq.Name, metav1.GetOptions{}); err != nil {
			return nil, nil, err
		}
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
	_, err = tls.X509KeyPair(rq.Status.Certificate, keyPEM)
	return rq.Status.Certificate, keyPEM, err
}

// publicKeyHash is how kubeadm writes an authority down.
func publicKeyHash(ca []byte) string {
	b, _ := pem.Decode(ca)
	if b == nil {
		return ""
	}
	cert, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}
