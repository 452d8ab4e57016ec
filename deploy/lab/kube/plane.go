package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
)

// The names of a plane's own programs, for Kill and Restart.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
)

// Options describe a plane.
type Options struct {
	// Dir keeps data, certificates and logs. It is made where missing.
	Dir string
	// Bin has the binaries; see Tools.
	Bin string
	// Namespace is where it runs; nil is this host, on loopback only.
	Namespace *lab.Namespace
	// Address and Port of the API server: 127.0.0.1 and a free one where zero.
	Address netip.Addr
	Port    int
	// Identity is made where nil.
	Identity *Identity
	// Hosts are more names of the API server's certificate.
	Hosts []string
	// Controllers of the controller manager; see Management. Empty: it is not run.
	Controllers []string
	// ControllerFlags are more flags of the controller manager.
	ControllerFlags []string
	// Issuer of the tokens of service accounts; that of a default cluster where empty.
	Issuer   string
	Services string // range of the services' addresses; 10.96.0.0/16 where empty
	// Webhooks is the address at which the API server reaches what runs beside it;
	// 127.0.0.1 where zero.
	Webhooks netip.Addr
}

// Management lists the controllers that a management cluster needs: owners' deletion
// cascades, namespaces end, roles aggregate.
func Management() []string {
	return []string{"garbage-collector-controller", "namespace-controller", "serviceaccount-controller", "root-ca-certificate-publisher-controller", "clusterrole-aggregation-controller"}
}

// Plane is a running control plane. Its methods may be used concurrently, but for
// Stop.
type Plane struct {
	Dir      string
	Bin      string
	Identity *Identity
	// URL of the API server.
	URL string
	// Kubeconfig is the path of the administrator's.
	Kubeconfig string

	ns       *lab.Namespace
	http     *http.Client
	webhooks string    // address
	capi     *managers // nil until it is needed

	mu    sync.Mutex
	procs []*process // in the order in which they were started
}

// Start starts a control plane and returns when it can be used, which takes some
// seconds. What was started is stopped where it fails.
func Start(ctx context.Context, o Options) (*Plane, error) {
	p, err := newPlane(ctx, &o)
	if err != nil {
		return nil, err
	}
	if err := p.open(ctx, o); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// Attach is a plane whose control plane is somebody else's, at o.Address and o.Port,
// with the authority of o.Identity. Nothing is started: managers can be, beside it.
func Attach(ctx context.Context, o Options) (*Plane, error) {
	p, err := newPlane(ctx, &o)
	if err != nil {
		return nil, err
	}
	return p, p.administer()
}

func newPlane(ctx context.Context, o *Options) (*Plane, error) {
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	for _, d := range []string{"log", "pki"} {
		if err := os.MkdirAll(filepath.Join(o.Dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	if o.Identity == nil {
		if o.Identity, err = NewIdentity(); err != nil {
			return nil, err
		}
	}
	if !o.Address.IsValid() {
		o.Address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if o.Services == "" {
		o.Services = "10.96.0.0/16"
	}
	if o.Issuer == "" {
		o.Issuer = "https://kubernetes.default.svc.cluster.local"
	}
	if !o.Webhooks.IsValid() {
		o.Webhooks = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	p := &Plane{Dir: o.Dir, Bin: o.Bin, Identity: o.Identity, ns: o.Namespace, webhooks: o.Webhooks.String(), Kubeconfig: filepath.Join(o.Dir, "kubeconfig")}
	if o.Port == 0 {
		if o.Port, err = p.FreePort(ctx); err != nil {
			return nil, err
		}
	}
	p.URL = "https://" + net.JoinHostPort(o.Address.String(), strconv.Itoa(o.Port))
	return p, nil
}

// administer makes the administrator's kubeconfig.
func (p *Plane) administer() error {
	admin, err := p.Identity.CA.Client("admin", "system:masters")
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.Kubeconfig, p.kubeconfig("admin", admin), 0o600); err != nil {
		return err
	}
	p.http, err = p.client(admin)
	return err
}

func (p *Plane) open(ctx context.Context, o Options) error {
	if err := p.administer(); err != nil {
		return err
	}
	services, err := netip.ParsePrefix(o.Services)
	if err != nil {
		return err
	}
	hosts := append([]string{o.Address.String(), "127.0.0.1", services.Masked().Addr().Next().String(), "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}, o.Hosts...)
	server, err := p.Identity.CA.Server("kube-apiserver", hosts...)
	if err != nil {
		return err
	}
	for name, b := range map[string][]byte{
		"ca.crt": p.Identity.CA.CertPEM, "ca.key": p.Identity.CA.KeyPEM, "apiserver.crt": server.Cert, "apiserver.key": server.Key,
		"sa.key": p.Identity.TokenKey, "sa.pub": p.Identity.TokenPub,
	} {
		if err := os.WriteFile(p.pki(name), b, 0o600); err != nil {
			return err
		}
	}
	ports, err := p.ports(ctx, 3)
	if err != nil {
		return err
	}
	for _, x := range []Process{p.etcd(ports[0], ports[1]), p.apiServer(o, ports[0]), p.controllerManager(o, ports[2])} {
		if x.Name == ControllerManager && len(o.Controllers) == 0 {
			continue
		}
		if err := p.Run(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plane) pki(name string) string { return filepath.Join(p.Dir, "pki", name) }

func (p *Plane) etcd(client, peer int) Process {
	url := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }
	return Process{Name: Etcd, Path: filepath.Join(p.Bin, "etcd"), Ready: url(client) + "/readyz", Args: []string{
		"--name=lab", "--data-dir=" + filepath.Join(p.Dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + url(client), "--advertise-client-urls=" + url(client),
		"--listen-peer-urls=" + url(peer), "--initial-advertise-peer-urls=" + url(peer), "--initial-cluster=lab=" + url(peer),
	}}
}

func (p *Plane) apiServer(o Options, etcd int) Process {
	return Process{Name: APIServer, Path: filepath.Join(p.Bin, "kube-apiserver"), Ready: p.URL + "/readyz", Args: []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", etcd),
		"--bind-address=" + o.Address.String(), "--advertise-address=" + o.Address.String(), fmt.Sprintf("--secure-port=%d", o.Port),
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=" + o.Services,
		"--tls-cert-file=" + p.pki("apiserver.crt"), "--tls-private-key-file=" + p.pki("apiserver.key"), "--client-ca-file=" + p.pki("ca.crt"),
		"--service-account-key-file=" + p.pki("sa.pub"), "--service-account-signing-key-file=" + p.pki("sa.key"), "--service-account-issuer=" + o.Issuer,
		// Pods are records here: nothing mounts a token into them.
		"--authorization-mode=Node,RBAC", "--disable-admission-plugins=ServiceAccount", "--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth=true", "--allow-privileged=true", "--profiling=false",
	}}
}

func (p *Plane) controllerManager(o Options, port int) Process {
	args := []string{
		"--kubeconfig=" + p.Kubeconfig, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--leader-elect=false",
		"--cert-dir=" + filepath.Join(p.Dir, "pki"), "--kube-api-qps=200", "--kube-api-burst=400",
		"--service-account-private-key-file=" + p.pki("sa.key"), "--root-ca-file=" + p.pki("ca.crt"),
		"--cluster-signing-cert-file=" + p.pki("ca.crt"), "--cluster-signing-key-file=" + p.pki("ca.key"),
		"--controllers=" + strings.Join(o.Controllers, ","),
	}
	return Process{Name: ControllerManager, Path: filepath.Join(p.Bin, "kube-controller-manager"), Args: append(args, o.ControllerFlags...)}
}

// command runs where the plane is, with a home of its own: kubectl and clusterctl
// keep caches there.
func (p *Plane) command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	if p.ns != nil {
		cmd = p.ns.Command(ctx, path, args...)
	}
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), "HOME="+p.Dir, "KUBECONFIG="+p.Kubeconfig, "PATH="+p.Bin+":"+os.Getenv("PATH"))
	return cmd
}

// Command is a command line that sees the plane as an operator's shell would: in its
// namespace, with its binaries in PATH, and KUBECONFIG set. It is not started.
func (p *Plane) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	if own := filepath.Join(p.Bin, name); !strings.Contains(name, "/") {
		if _, err := os.Stat(own); err == nil {
			name = own
		}
	}
	return p.command(ctx, name, args...)
}

// Kubectl runs kubectl and returns what it printed; the error has what it said.
func (p *Plane) Kubectl(ctx context.Context, args ...string) (string, error) {
	return p.kubectl(ctx, nil, args...)
}

// Apply applies documents on the server's side, over whoever owned their fields.
func (p *Plane) Apply(ctx context.Context, yaml string) error {
	_, err := p.kubectl(ctx, strings.NewReader(yaml), "apply", "--server-side", "--force-conflicts", "-f", "-")
	return err
}

func (p *Plane) kubectl(ctx context.Context, in *strings.Reader, args ...string) (string, error) {
	cmd := p.Command(ctx, "kubectl", args...)
	if in != nil {
		cmd.Stdin = in
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), err
}

// ServiceAccountUser is what RBAC calls a service account, and the groups it is in.
func ServiceAccountUser(namespace, name string) (user string, groups []string) {
	return "system:serviceaccount:" + namespace + ":" + name, []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
}

// WriteKubeconfig writes a kubeconfig for a user into the plane's folder, and returns
// its path. The user may do what RBAC lets it.
func (p *Plane) WriteKubeconfig(user string, groups ...string) (string, error) {
	pair, err := p.Identity.CA.Client(user, groups...)
	if err != nil {
		return "", err
	}
	path := filepath.Join(p.Dir, "kubeconfig-"+strings.NewReplacer(":", "-", "/", "-").Replace(user))
	return path, os.WriteFile(path, p.kubeconfig(user, pair), 0o600)
}

func (p *Plane) kubeconfig(user string, pair Pair) []byte {
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: lab
contexts: [{name: lab, context: {cluster: lab, user: %q}}]
clusters: [{name: lab, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: %q, user: {client-certificate-data: %s, client-key-data: %s}}]
`, user, p.URL, b64(p.Identity.CA.CertPEM), user, b64(pair.Cert), b64(pair.Key))
}

// Dial connects from where the plane is. The address is a literal.
func (p *Plane) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if p.ns != nil {
		return p.ns.Dial(ctx, network, addr)
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

func (p *Plane) client(admin Pair) (*http.Client, error) {
	cert, err := tls.X509KeyPair(admin.Cert, admin.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.Identity.CA.CertPEM)
	return &http.Client{Transport: &http.Transport{
		DialContext: p.Dial, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}},
	}}, nil
}

// FreePort is a TCP port of 127.0.0.1 that nobody listens at. It is below those that
// the kernel gives to outgoing connections, so that it is still free when a killed
// program is started again.
func (p *Plane) FreePort(ctx context.Context) (int, error) {
	var err error
	for range 100 {
		port := 20000 + rand.IntN(12000)
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		var ln net.Listener
		if p.ns != nil {
			ln, err = p.ns.Listen(ctx, "tcp", addr)
		} else {
			ln, err = new(net.ListenConfig).Listen(ctx, "tcp", addr)
		}
		if err == nil {
			return port, ln.Close()
		}
	}
	return 0, fmt.Errorf("no free port: %w", err)
}

func (p *Plane) ports(ctx context.Context, n int) ([]int, error) {
	var out []int
	for range n {
		port, err := p.FreePort(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, port)
	}
	return out, nil
}

// Stop ends everything, the last that was started first: an API server whose etcd is
// gone would hang. Data and logs stay.
func (p *Plane) Stop() error {
	p.mu.Lock()
	procs := p.procs
	p.procs = nil
	p.mu.Unlock()
	var err error
	for i := len(procs) - 1; i >= 0; i-- {
		q := procs[i]
		if q.exited == nil || q.ended() {
			continue
		}
		// An API server waits for its watchers; nothing here needs that.
		if q.end(syscall.SIGTERM, 2*time.Second) != nil {
			err = errors.Join(err, q.end(syscall.SIGKILL, 20*time.Second))
		}
	}
	return err
}
