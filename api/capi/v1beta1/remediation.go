package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RackstrapRemediation brings one unhealthy Machine back. A MachineHealthCheck makes it
// from its template, with the Machine's name, and deletes it when the node is healthy.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=rackstrapremediations,scope=Namespaced,categories=cluster-api,shortName=rsr
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Try",type="integer",JSONPath=".status.tries"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].message"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type RackstrapRemediation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what you want.
	// +optional
	Spec RackstrapRemediationSpec `json:"spec,omitempty,omitzero"`
	// status is what is.
	// +optional
	Status RackstrapRemediationStatus `json:"status,omitempty,omitzero"`
}

// RackstrapRemediationSpec says how hard to try. In this order: the power is cycled,
// the system is installed again, the Machine is replaced.
type RackstrapRemediationSpec struct {
	// powerCycles is how often the power is cycled; 1 where left out, 0 is never.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	PowerCycles *int32 `json:"powerCycles,omitempty"`
	// reinstall: IfNeverJoined (the default) installs a machine again whose node never
	// joined, while its bootstrap data is good. Always also installs one that had joined:
	// for bootstrap data that stays good, such as Talos'. Never goes on to the replacement.
	// +optional
	// +kubebuilder:validation:Enum=IfNeverJoined;Always;Never
	Reinstall ReinstallPolicy `json:"reinstall,omitempty"`
	// timeoutSeconds is how long a step may take to make the node healthy; 600 where left
	// out.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// replace false: the Machine is left as it is, with a condition, when nothing helped.
	// +optional
	Replace *bool `json:"replace,omitempty"`
}

// ReinstallPolicy says when a machine is installed again.
type ReinstallPolicy string

// The policies.
const (
	ReinstallIfNeverJoined ReinstallPolicy = "IfNeverJoined"
	ReinstallAlways        ReinstallPolicy = "Always"
	ReinstallNever         ReinstallPolicy = "Never"
)

// RemediationPhase is the step that a remediation is in.
type RemediationPhase string

// The phases.
const (
	PhasePowerCycle RemediationPhase = "PowerCycle"
	PhaseReinstall  RemediationPhase = "Reinstall"
	PhaseReplace    RemediationPhase = "Replace"
	PhaseGaveUp     RemediationPhase = "GaveUp"
)

// RackstrapRemediationStatus is how far it is.
type RackstrapRemediationStatus struct {
	// conditions; Ready says what is being done.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// phase is the step.
	// +optional
	// +kubebuilder:validation:Enum=PowerCycle;Reinstall;Replace;GaveUp
	Phase RemediationPhase `json:"phase,omitempty"`
	// tries counts the power cycles.
	// +optional
	Tries *int32 `json:"tries,omitempty"`
	// stepStarted is when the present step was asked for.
	// +optional
	StepStarted *metav1.Time `json:"stepStarted,omitempty"`
	// powerBefore is when the appliance had switched the machine last before it was asked
	// for the present power cycle: once it says another time, it has done so, and does not
	// do it twice.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PowerBefore string `json:"powerBefore,omitempty"`
}

// RackstrapRemediationList is a list of them.
// +kubebuilder:object:root=true
type RackstrapRemediationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RackstrapRemediation `json:"items"`
}

// RackstrapRemediationTemplate is what a MachineHealthCheck names.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=rackstrapremediationtemplates,scope=Namespaced,categories=cluster-api,shortName=rsrt
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type RackstrapRemediationTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what you want.
	// +required
	Spec RackstrapRemediationTemplateSpec `json:"spec,omitempty,omitzero"`
}

// RackstrapRemediationTemplateSpec has the template.
type RackstrapRemediationTemplateSpec struct {
	// template of the remediations.
	// +required
	Template RackstrapRemediationTemplateResource `json:"template,omitempty,omitzero"`
}

// RackstrapRemediationTemplateResource is one remediation, not made yet.
type RackstrapRemediationTemplateResource struct {
	// metadata is copied to the remediations.
	// +optional
	ObjectMeta ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is copied to the remediations.
	// +optional
	Spec RackstrapRemediationSpec `json:"spec,omitempty"`
}

// RackstrapRemediationTemplateList is a list of them.
// +kubebuilder:object:root=true
type RackstrapRemediationTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RackstrapRemediationTemplate `json:"items"`
}

// GetConditions is what the Cluster API's helpers read.
func (r *RackstrapRemediation) GetConditions() []metav1.Condition { return r.Status.Conditions }

// SetConditions is what they write.
func (r *RackstrapRemediation) SetConditions(x []metav1.Condition) { r.Status.Conditions = x }
