package node

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

func infra(name, ip string) infrav1.RackstrapMachine {
	o := infrav1.RackstrapMachine{ObjectMeta: metav1.ObjectMeta{Name: "m-" + name, UID: types.UID(name)}}
	o.Spec.ProviderID = "rackstrap://" + name
	o.Status.Addresses = []clusterv1.MachineAddress{{Type: clusterv1.MachineHostName, Address: name}, {Type: clusterv1.MachineInternalIP, Address: ip}}
	return o
}

func registered(name, id, ip string, ready corev1.ConditionStatus) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
	if ready != "" {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	}
	return n
}

// Which Node gets the provider id of the machine a with the address 10.0.0.1.
func TestChoose(t *testing.T) {
	t.Parallel()
	other := registered("b", "", "10.0.0.2", "")
	for _, c := range []struct {
		name   string
		nodes  []corev1.Node
		others []infrav1.RackstrapMachine
		want   string
		says   []string
	}{
		{name: "none"},
		{name: "by its name", nodes: []corev1.Node{other, registered("a", "", "192.0.2.1", corev1.ConditionFalse)}, want: "a"},
		{name: "by its address", nodes: []corev1.Node{registered("x", "", "10.0.0.1", corev1.ConditionTrue), other}, want: "x"},
		{name: "no condition yet", nodes: []corev1.Node{registered("a", "", "10.0.0.1", "")}, want: "a"},
		{name: "another's", nodes: []corev1.Node{other}},
		{name: "has one of somebody", nodes: []corev1.Node{registered("a", "kind://a", "10.0.0.1", "")}},
		{name: "another Node has it", nodes: []corev1.Node{registered("a", "", "10.0.0.1", ""), registered("x", "rackstrap://a", "10.0.0.9", "")}},
		{name: "left behind", nodes: []corev1.Node{registered("a", "", "10.0.0.1", corev1.ConditionUnknown)}},
		{name: "two", nodes: []corev1.Node{registered("x", "", "10.0.0.1", ""), registered("a", "", "192.0.2.1", "")}, says: []string{"a and x", "delete"}},
		{name: "two machines", nodes: []corev1.Node{registered("a", "", "10.0.0.2", "")}, others: []infrav1.RackstrapMachine{infra("b", "10.0.0.2")}, says: []string{"Node a", "m-b"}},
		{name: "beside others", nodes: []corev1.Node{registered("a", "", "10.0.0.1", ""), other}, others: []infrav1.RackstrapMachine{infra("b", "10.0.0.2")}, want: "a"},
	} {
		o := infra("a", "10.0.0.1")
		n, why := choose(&o, c.nodes, append(c.others, o))
		got := ""
		if n != nil {
			got = n.Name
		}
		if got != c.want || (why == "") != (len(c.says) == 0) {
			t.Errorf("%s: %q, %q; want %q", c.name, got, why, c.want)
		}
		for _, s := range c.says {
			if !strings.Contains(why, s) {
				t.Errorf("%s: %q has no %q", c.name, why, s)
			}
		}
	}
}

// A kubeconfig from a Secret runs no program and reads no file of ours.
func TestConfigOf(t *testing.T) {
	t.Parallel()
	const rest = "\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\napiVersion: v1\nkind: Config\n"
	for _, c := range []struct {
		text string
		says string
	}{
		{`clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}]` + "\n" + `users: [{name: u, user: {token: x}}]`, ""},
		{`clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}]` + "\n" + `users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: id, interactiveMode: Never}}}]`, "program"},
		{`clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}]` + "\n" + `users: [{name: u, user: {tokenFile: /etc/passwd}}]`, "file"},
		{`clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}]` + "\n" + `users: [{name: u, user: {client-key: /etc/passwd, client-certificate: /etc/passwd}}]`, "file"},
		{`clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443", certificate-authority: /etc/passwd}}]` + "\n" + `users: [{name: u, user: {token: x}}]`, "file"},
	} {
		cfg, err := configOf([]byte(c.text + rest))
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.text, err, c.says)
		}
		if err == nil && (cfg.Host != "https://192.0.2.1:6443" || cfg.Timeout != patience) {
			t.Errorf("%+v", cfg)
		}
	}
	for _, text := range []string{"", "[", "kind: List\n"} {
		if _, err := configOf([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
