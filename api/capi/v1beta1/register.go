package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group that the Cluster API gives to infrastructure providers.
const Group = "infrastructure.cluster.x-k8s.io"

// GroupVersion is the version of all kinds here.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: "v1beta1"}
}

// AddToScheme lets a client read and write the kinds.
func AddToScheme(s *runtime.Scheme) error {
	gv := GroupVersion()
	s.AddKnownTypes(
		gv,
		&RackstrapCluster{}, &RackstrapClusterList{}, &RackstrapClusterTemplate{}, &RackstrapClusterTemplateList{},
		&RackstrapMachine{}, &RackstrapMachineList{}, &RackstrapMachineTemplate{}, &RackstrapMachineTemplateList{},
		&RackstrapRemediation{}, &RackstrapRemediationList{}, &RackstrapRemediationTemplate{}, &RackstrapRemediationTemplateList{},
	)
	metav1.AddToGroupVersion(s, gv)
	return nil
}
