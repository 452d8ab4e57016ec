# Runs inside the new root, in a mount and a process namespace of its own: containerd
# takes the container images of /run/images into its store, so that a node need not.
set -eu
cat >/run/containerd.toml <<END
version = 2
disabled_plugins = ["io.containerd.grpc.v1.cri"]
END
containerd --config /run/containerd.toml --log-level warn >/run/containerd.log 2>&1 &
for i in $(seq 100); do
	ctr version >/dev/null 2>&1 && break
	sleep 0.1
done
for image in /run/images/*.tar; do
	ctr --namespace k8s.io images import "$image" || { cat /run/containerd.log; exit 1; }
done
ctr --namespace k8s.io images check -q
kill %1 2>/dev/null || kill $!
wait $! || true
