# Runs after customize.sh: a node of Kubernetes, which kubeadm makes a member of a
# cluster. @PAUSE@ is the name of the image that holds a pod's namespaces.

mkdir -p /etc/containerd /etc/cni/net.d /etc/modules-load.d /etc/sysctl.d
cat >/etc/containerd/config.toml <<END
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "@PAUSE@"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
END

# Pods of one node reach each other and the world. Nothing routes between nodes.
cat >/etc/cni/net.d/10-lab.conflist <<END
{"cniVersion": "1.0.0", "name": "lab", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
printf '%s\n' overlay br_netfilter >/etc/modules-load.d/node.conf
printf '%s\n' net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1 >/etc/sysctl.d/90-node.conf

# kubeadm writes its configuration and starts it; before that it would end again and
# again, and a start takes an emulated processor seconds.
cat >/etc/systemd/system/kubelet.service <<END
[Unit]
Description=kubelet
ConditionPathExists=/var/lib/kubelet/config.yaml
After=containerd.service network-online.target
Wants=network-online.target
[Service]
Environment="KUBECONFIGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/usr/bin/kubelet \$KUBECONFIGS --config=/var/lib/kubelet/config.yaml \$KUBELET_KUBEADM_ARGS
Restart=always
RestartSec=5
[Install]
WantedBy=multi-user.target
END
systemctl enable --quiet kubelet containerd

# cloud-init runs kubeadm, which wants to talk to containerd.
mkdir -p /etc/systemd/system/cloud-final.service.d
printf '[Unit]\nAfter=containerd.service\nWants=containerd.service\n' >/etc/systemd/system/cloud-final.service.d/node.conf
