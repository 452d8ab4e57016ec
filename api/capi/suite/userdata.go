package suite

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/rackstrap/rackstrap/deploy/lab/sim"
)

// userData is what cloud-init reads of kubeadm's data, as far as a simulated node does
// what it says.
type userData struct {
	WriteFiles []struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	} `json:"write_files"`
	RunCmd    []any `json:"runcmd"`
	PhoneHome struct {
		URL string `json:"url"`
	} `json:"phone_home"`
}

// The header of data that cloud-init renders before it reads it.
const jinja = "## template: jinja\n"

var expression = regexp.MustCompile(`\{\{\s*([^}]*?)\s*\}\}`)

// readUserData renders and reads data as cloud-init does. The data must be byte by byte
// what the bootstrap provider made: without its first line nothing is rendered, and
// without its second it is no cloud-config.
func readUserData(s *sim.System) (userData, error) {
	var out userData
	text, rendered := strings.CutPrefix(string(s.UserData), jinja)
	if rendered {
		var unknown []string
		text = expression.ReplaceAllStringFunc(text, func(x string) string {
			key, ok := strings.CutPrefix(expression.FindStringSubmatch(x)[1], "ds.meta_data.")
			v := s.Meta(key)
			if v == "" { // an underscore stands for a dash too
				v = s.Meta(strings.ReplaceAll(key, "_", "-"))
			}
			if !ok || v == "" {
				unknown = append(unknown, x)
			}
			return v
		})
		if unknown != nil {
			return out, fmt.Errorf("cloud-init knows no %s", strings.Join(unknown, ", "))
		}
	}
	if !strings.HasPrefix(text, "#cloud-config\n") {
		return out, errors.New("the user-data does not begin as a cloud-config")
	}
	return out, yaml.Unmarshal([]byte(text), &out)
}

func (u *userData) file(path string) (string, bool) {
	for _, f := range u.WriteFiles {
		if f.Path == path {
			return f.Content, true
		}
	}
	return "", false
}

// runs reports whether a command begins so.
func (u *userData) runs(prefix string) bool {
	for _, c := range u.RunCmd {
		if c, ok := c.(string); ok && strings.HasPrefix(c, prefix) {
			return true
		}
	}
	return false
}

// arg is a flag of a program.
type arg struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// kubeadm is what its configuration files say, of all their kinds together.
type kubeadm struct {
	// of ClusterConfiguration
	ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
	KubernetesVersion    string `json:"kubernetesVersion"`
	Networking           struct {
		ServiceSubnet string `json:"serviceSubnet"`
	} `json:"networking"`
	// of JoinConfiguration
	Discovery struct {
		BootstrapToken struct {
			APIServerEndpoint string   `json:"apiServerEndpoint"`
			Token             string   `json:"token"`
			CACertHashes      []string `json:"caCertHashes"`
		} `json:"bootstrapToken"`
	} `json:"discovery"`
	ControlPlane *struct{} `json:"controlPlane"`
	// of both
	NodeRegistration struct {
		Name             string  `json:"name"`
		KubeletExtraArgs []arg   `json:"kubeletExtraArgs"`
		Taints           []taint `json:"taints"`
	} `json:"nodeRegistration"`

	// cluster is the ClusterConfiguration's text.
	cluster string
}

func readKubeadm(text string) (kubeadm, error) {
	var out kubeadm
	for doc := range strings.SplitSeq("\n"+text, "\n---") {
		var kind struct {
			Kind string `json:"kind"`
		}
		if err := errors.Join(yaml.Unmarshal([]byte(doc), &kind), yaml.Unmarshal([]byte(doc), &out)); err != nil {
			return out, err
		}
		if kind.Kind == "ClusterConfiguration" {
			out.cluster = strings.TrimLeft(doc, "\n")
		}
	}
	return out, nil
}

// kubelet is a flag of the kubelet; empty where it has none.
func (k *kubeadm) kubelet(name string) string {
	for _, a := range k.NodeRegistration.KubeletExtraArgs {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}
