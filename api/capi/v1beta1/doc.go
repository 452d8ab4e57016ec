// Package v1beta1 has the Cluster API kinds of Rackstrap, for version v1beta2 of the
// infrastructure contract:
// https://cluster-api.sigs.k8s.io/developer/providers/contracts/overview
//
// The types are the wire format: the CRDs in deploy/capi/config/crd are generated
// from them (`make capi-generate`). Nothing here talks to anybody.
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
// +versionName=v1beta1
package v1beta1
