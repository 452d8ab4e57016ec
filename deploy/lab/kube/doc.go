// Package kube runs real Kubernetes control planes, and the Cluster API's managers,
// as processes: etcd, kube-apiserver, kube-controller-manager and what else is asked
// for, each of which may be killed and started again. It imports nothing of
// Kubernetes: it makes certificates, runs binaries and writes YAML.
package kube
