package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// RackstrapCluster is what the machines of one cluster share: the appliance, the
// endpoint of the control plane and the failure domains.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=rackstrapclusters,scope=Namespaced,categories=cluster-api,shortName=rsc
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']"
// +kubebuilder:printcolumn:name="Endpoint",type="string",JSONPath=".spec.controlPlaneEndpoint.host"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Machines",type="integer",JSONPath=".status.machines"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].message"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type RackstrapCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what you want.
	// +required
	Spec RackstrapClusterSpec `json:"spec,omitempty,omitzero"`
	// status is what is.
	// +optional
	Status RackstrapClusterStatus `json:"status,omitempty,omitzero"`
}

// RackstrapClusterSpec says what the machines of a cluster share.
type RackstrapClusterSpec struct {
	// controlPlaneEndpoint is the address of the control plane: one machine's, a load
	// balancer's, or a virtual one that something in the machines announces (kube-vip).
	// Nothing here makes it. Where it is left out the Cluster's own is waited for.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`
	// appliance is where the machines come from.
	// +required
	Appliance ApplianceReference `json:"appliance,omitempty,omitzero"`
	// failureDomains says how the Hardware is divided.
	// +optional
	FailureDomains FailureDomains `json:"failureDomains,omitempty,omitzero"`
}

// FailureDomains says how the Hardware is divided into what fails together.
// +kubebuilder:validation:MinProperties=1
type FailureDomains struct {
	// label of the Hardware whose values are the failure domains; rack where empty. A
	// Hardware without the label rack stands in its spec.rack.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Label string `json:"label,omitempty"`
	// placement says what happens where a machine's failure domain has no free Hardware:
	// Required (the default) waits for one, Preferred takes one elsewhere.
	// +optional
	// +kubebuilder:validation:Enum=Required;Preferred
	Placement Placement `json:"placement,omitempty"`
	// controlPlane lists the failure domains that may have control plane machines; all
	// where empty.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	ControlPlane []string `json:"controlPlane,omitempty"`
	// disabled: there are none.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`
}

// Placement says how much a failure domain is worth.
type Placement string

// The placements.
const (
	PlacementRequired  Placement = "Required"
	PlacementPreferred Placement = "Preferred"
)

// RackstrapClusterStatus is what is known of a cluster.
type RackstrapClusterStatus struct {
	// conditions; Ready sums them up.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// initialization is read by the Cluster API.
	// +optional
	Initialization Initialization `json:"initialization,omitempty,omitzero"`
	// failureDomains are the values of the label, of the Hardware that the token sees.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`
	// machines counts the RackstrapMachines that have a claim.
	// +optional
	Machines *int32 `json:"machines,omitempty"`
}

// RackstrapClusterList is a list of them.
// +kubebuilder:object:root=true
type RackstrapClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RackstrapCluster `json:"items"`
}

// RackstrapClusterTemplate is what a ClusterClass makes RackstrapClusters from.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=rackstrapclustertemplates,scope=Namespaced,categories=cluster-api,shortName=rsct
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type RackstrapClusterTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what you want.
	// +required
	Spec RackstrapClusterTemplateSpec `json:"spec,omitempty,omitzero"`
}

// RackstrapClusterTemplateSpec has the template.
type RackstrapClusterTemplateSpec struct {
	// template of the clusters.
	// +required
	Template RackstrapClusterTemplateResource `json:"template,omitempty,omitzero"`
}

// RackstrapClusterTemplateResource is one cluster, not made yet.
type RackstrapClusterTemplateResource struct {
	// metadata is copied to the clusters.
	// +optional
	ObjectMeta ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is copied to the clusters.
	// +required
	Spec RackstrapClusterSpec `json:"spec,omitempty,omitzero"`
}

// RackstrapClusterTemplateList is a list of them.
// +kubebuilder:object:root=true
type RackstrapClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RackstrapClusterTemplate `json:"items"`
}

// GetConditions is what the Cluster API's helpers read.
func (c *RackstrapCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions is what they write.
func (c *RackstrapCluster) SetConditions(x []metav1.Condition) { c.Status.Conditions = x }
