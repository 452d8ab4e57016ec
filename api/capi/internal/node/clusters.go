package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// patience is how long a workload cluster may take for an answer.
	patience = 10 * time.Second
	// fresh is how long its Nodes are not read again, whoever asks: a rollout waits for
	// many of them at the same time.
	fresh = 5 * time.Second
	// quiet is how long one that did not answer is not asked.
	quiet = 20 * time.Second
)

// clusters are the connections to workload clusters.
type clusters struct {
	reader client.Reader

	mu   sync.Mutex
	have map[client.ObjectKey]*workload
}

// workload is one workload cluster.
type workload struct {
	mu       sync.Mutex
	revision string // of the Secret that the client was made from
	client   typedcorev1.CoreV1Interface
	nodes    []corev1.Node
	err      error
	until    time.Time // nodes, or err, are good until then
}

func (c *clusters) of(cluster client.ObjectKey) *workload {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.have[cluster]
	if w == nil {
		w = &workload{}
		if c.have == nil {
			c.have = map[client.ObjectKey]*workload{}
		}
		c.have[cluster] = w
	}
	return w
}

// forget drops what is kept of a cluster that is gone.
func (c *clusters) forget(cluster client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.have, cluster)
}

// nodes reads the Nodes of a cluster. They are read only. Nobody waits for two
// connections to a cluster that does not answer.
func (c *clusters) nodes(ctx context.Context, cluster client.ObjectKey) ([]corev1.Node, error) {
	w := c.of(cluster)
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Now().Before(w.until) {
		return w.nodes, w.err
	}
	w.nodes, w.err = w.read(ctx, c.reader, cluster)
	w.until = time.Now().Add(fresh)
	if w.err != nil {
		w.until = time.Now().Add(quiet)
	}
	return w.nodes, w.err
}

// read lists the Nodes. A cluster whose kubeconfig is not made yet has none.
func (w *workload) read(ctx context.Context, r client.Reader, cluster client.ObjectKey) ([]corev1.Node, error) {
	s := new(corev1.Secret)
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + "-kubeconfig"}
	if err := r.Get(ctx, key, s); err != nil {
		w.client = nil
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	if revision := string(s.UID) + "/" + s.ResourceVersion; w.client == nil || w.revision != revision {
		cfg, err := configOf(s.Data["value"])
		if err != nil {
			return nil, fmt.Errorf("the Secret %s: %w", key, err)
		}
		if w.client, err = typedcorev1.NewForConfig(cfg); err != nil {
			return nil, fmt.Errorf("the Secret %s: %w", key, err)
		}
		w.revision = revision
	}
	// "0" is what the API server has in memory; what is written names the version that
	// was read.
	list, err := w.client.Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// configOf reads a kubeconfig. Whoever may write Secrets in a namespace must not run a
// program here, nor have a file of ours sent to a server of theirs.
func configOf(kubeconfig []byte) (*rest.Config, error) {
	k, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("value is no kubeconfig: %w", err)
	}
	for name, u := range k.AuthInfos {
		if u.Exec != nil || u.AuthProvider != nil || u.TokenFile != "" || u.ClientCertificate != "" || u.ClientKey != "" {
			return nil, fmt.Errorf("value: the user %q names a program or a file; it needs client-certificate-data and client-key-data, or token", name)
		}
	}
	for name, x := range k.Clusters {
		if x.CertificateAuthority != "" {
			return nil, fmt.Errorf("value: the cluster %q names a file; it needs certificate-authority-data", name)
		}
	}
	cfg, err := clientcmd.NewDefaultClientConfig(*k, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("value is no kubeconfig: %w", err)
	}
	cfg.Timeout, cfg.UserAgent = patience, "rackstrap-capi"
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	return cfg, nil
}
