// Package appliance keeps the connections to the appliances that clusters name by
// their Secrets.
package appliance

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/api/client"
)

// Appliance is one appliance as one Secret lets us use it.
type Appliance struct {
	*client.Client
	// OwnerPrefix begins the owners of all claims; it ends with a slash.
	OwnerPrefix string
	// Secret is what it was read from.
	Secret ctrlclient.ObjectKey

	silence silence
}

// Owner is the owner of the claims of one machine: PREFIX NAMESPACE/CLUSTER/MACHINE.
func (a *Appliance) Owner(namespace, cluster, machine string) string {
	return a.OwnerPrefix + namespace + "/" + cluster + "/" + machine
}

// SecretError is a Secret that is missing, or that cannot be used.
type SecretError struct {
	Secret  ctrlclient.ObjectKey
	Missing bool
	Detail  string
}

func (e *SecretError) Error() string {
	return fmt.Sprintf("the Secret %s %s", e.Secret, e.Detail)
}

// Pool has one Appliance for each Secret. It may be used by several goroutines.
type Pool struct {
	// Reader reads Secrets; it is not a cache, which would hold every Secret that it may
	// read in memory.
	Reader ctrlclient.Reader

	mu        sync.Mutex
	have      map[ctrlclient.ObjectKey]pooled
	listeners []func(Signal)
	ctx       context.Context // of Start; nil before it
	streams   sync.WaitGroup
}

type pooled struct {
	revision string // resourceVersion of the Secret
	uid      string
	app      *Appliance
	stop     func() // ends the stream; nil where there is none
}

// For is the appliance that ref names in namespace: *SecretError.
func (p *Pool) For(ctx context.Context, namespace string, ref infrav1.ApplianceReference) (*Appliance, error) {
	key := ctrlclient.ObjectKey{Namespace: namespace, Name: ref.SecretRef.Name}
	s := new(corev1.Secret)
	err := p.Reader.Get(ctx, key, s)
	if apierrors.IsNotFound(err) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.drop(key)
		return nil, &SecretError{Secret: key, Missing: true, Detail: "does not exist (make it with the keys url, token, ownerPrefix and ca.crt or fingerprint)"}
	}
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, ok := p.have[key]; ok && old.revision == s.ResourceVersion && old.uid == string(s.UID) {
		return old.app, nil
	}
	app, err := connect(key, s)
	if err != nil {
		return nil, err
	}
	if p.have == nil {
		p.have = map[ctrlclient.ObjectKey]pooled{}
	}
	p.drop(key)
	p.have[key] = p.followed(pooled{revision: s.ResourceVersion, uid: string(s.UID), app: app})
	return app, nil
}

func connect(key ctrlclient.ObjectKey, s *corev1.Secret) (*Appliance, error) {
	get := func(name string) string { return strings.TrimSpace(string(s.Data[name])) }
	for _, name := range []string{infrav1.SecretURL, infrav1.SecretToken, infrav1.SecretOwnerPrefix} {
		if get(name) == "" {
			return nil, &SecretError{Secret: key, Detail: fmt.Sprintf("has no %s; it needs url, token, ownerPrefix and ca.crt or fingerprint (kubectl -n %s edit secret %s)", name, key.Namespace, key.Name)}
		}
	}
	o := client.Options{URL: get(infrav1.SecretURL), Token: get(infrav1.SecretToken), CA: s.Data[infrav1.SecretCA], Fingerprint: get(infrav1.SecretFingerprint)}
	if err := o.Check(); err != nil {
		return nil, &SecretError{Secret: key, Detail: "cannot be used: " + err.Error()}
	}
	prefix := get(infrav1.SecretOwnerPrefix)
	if !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	return &Appliance{Client: client.New(o), OwnerPrefix: prefix, Secret: key}, nil
}
