package v1beta1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// Finalizers.
const (
	// ClusterFinalizer keeps a RackstrapCluster while machines need what it names.
	ClusterFinalizer = "infrastructure.cluster.x-k8s.io/rackstrapcluster"
	// MachineFinalizer keeps a RackstrapMachine until its machine is known to run no
	// more.
	MachineFinalizer = "infrastructure.cluster.x-k8s.io/rackstrapmachine"
	// SecretFinalizer keeps the Secret with the appliance's token while there are claims
	// that only it can end.
	SecretFinalizer = "infrastructure.cluster.x-k8s.io/rackstrap-appliance"
	// RemediationFinalizer keeps a RackstrapRemediation while it switches a machine.
	RemediationFinalizer = "infrastructure.cluster.x-k8s.io/rackstrapremediation"
)

// Annotations that people set.
const (
	// HoldAnnotation on a RackstrapMachine: the next step towards the appliance is not
	// taken until it is gone. A deletion goes on.
	HoldAnnotation = "infrastructure.cluster.x-k8s.io/hold"
	// SkipAnnotation on a RackstrapMachine that is being deleted: what its value names,
	// comma-separated, is not waited for: "power-off" (the machine may still run), or
	// "release" (the claim is left in the appliance, which may be gone for good).
	SkipAnnotation = "infrastructure.cluster.x-k8s.io/skip"
)

// What SkipAnnotation may name.
const (
	SkipPowerOff = "power-off"
	SkipRelease  = "release"
)

// UnhealthyAnnotation on a RackstrapMachine says that remediation gave its machine up:
// the release tells the appliance, which quarantines it until a human accepts it.
const UnhealthyAnnotation = "infrastructure.cluster.x-k8s.io/unhealthy"

// UIDLabel on a claim in the appliance is the uid of the RackstrapMachine that it was made
// for: an object that comes out of a backup without its claimID has its claim back.
const UIDLabel = "capi/uid"

// ProgressAnnotation on a RackstrapRemediation is what its status says of the steps that
// were begun, as JSON: a status does not come along with `clusterctl move`, and what was
// done once is not done again.
const ProgressAnnotation = "infrastructure.cluster.x-k8s.io/progress"

// Condition types besides clusterv1.ReadyCondition and clusterv1.PausedCondition.
const (
	// ApplianceReachableCondition of a cluster: its appliance answers with this token.
	ApplianceReachableCondition = "ApplianceReachable"
	// FailureDomainsKnownCondition of a cluster: status.failureDomains follow from the
	// Hardware.
	FailureDomainsKnownCondition = "FailureDomainsKnown"
	// HardwareClaimedCondition of a machine: it has a Hardware.
	HardwareClaimedCondition = "HardwareClaimed"
	// AddressesReadyCondition of a machine: every address that it asked pools for is
	// there. Absent where it asks for none.
	AddressesReadyCondition = "AddressesReady"
	// InstalledCondition of a machine: its operating system is on the disk, and it was
	// restarted into it.
	InstalledCondition = "Installed"
	// HardwareHealthyCondition of a machine: the appliance has no issue with it.
	HardwareHealthyCondition = "HardwareHealthy"
	// ReleasedCondition of a machine that is being deleted: its claim has ended and its
	// system runs no more.
	ReleasedCondition = "Released"
)

// Reasons of conditions, besides those of clusterv1. Each has its heading in
// deploy/docs/capi.md.
const (
	WaitingForClusterReason       = "WaitingForClusterInfrastructureReady"
	WaitingForBootstrapDataReason = "WaitingForBootstrapData"
	WaitingForEndpointReason      = "WaitingForControlPlaneEndpoint"
	ApplianceSecretMissingReason  = "ApplianceSecretMissing"
	ApplianceSecretInvalidReason  = "ApplianceSecretInvalid"
	ApplianceUnreachableReason    = "ApplianceUnreachable"
	ApplianceRefusedReason        = "ApplianceRefused"
	ApplianceReachableReason      = "ApplianceReachable"
	NoFailureDomainsReason        = "NoFailureDomains"
	FailureDomainsKnownReason     = "FailureDomainsKnown"
	NoHardwareFitsReason          = "NoHardwareFits"
	ClaimLostReason               = "ClaimLost"
	ClaimOfAnotherReason          = "ClaimOfAnother"
	HardwareClaimedReason         = "HardwareClaimed"
	WaitingForAddressesReason     = "WaitingForAddresses"
	AddressesReadyReason          = "AddressesReady"
	ImageMissingReason            = "ImageMissing"
	BootstrapDataUnusableReason   = "BootstrapDataUnusable"
	InvalidSpecReason             = "InvalidSpec"
	WaitingForMachineReason       = "WaitingForMachine"
	InstallingReason              = "Installing"
	InstallFailedReason           = "InstallFailed"
	InstalledReason               = "Installed"
	OnHoldReason                  = "OnHold"
	HardwareIssueReason           = "HardwareIssue"
	HardwareHealthyReason         = "HardwareHealthy"
	WaitingForPowerOffReason      = "WaitingForPowerOff"
	WaitingForMachinesReason      = "WaitingForMachinesDeletion"
	CapacityKnownReason           = "CapacityKnown"
	RemediatingReason             = "Remediating"
	RemediationSucceededReason    = "RemediationSucceeded"
	RemediationGaveUpReason       = "RemediationGaveUp"
	RemediationNotPossibleReason  = "RemediationNotPossible"
)

// Initialization is what the Cluster API waits for once, and never looks back at.
// +kubebuilder:validation:MinProperties=1
type Initialization struct {
	// provisioned is true when the infrastructure is there for the first time.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// LocalReference names an object of the same namespace.
type LocalReference struct {
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// ApplianceReference says where the appliance is and who we are there: a Secret with
// the keys
//
//	url          https://appliance.example:7443
//	token        a claimer's: rackstrap token create NAME --role claimer --owner-prefix PREFIX
//	ownerPrefix  what the owners of the claims begin with, as the token has it
//	ca.crt       PEM, or fingerprint: the SHA-256 of the appliance's certificate in hex
type ApplianceReference struct {
	// secretRef names the Secret.
	// +required
	SecretRef LocalReference `json:"secretRef,omitempty,omitzero"`
}

// The keys of the Secret.
const (
	SecretURL         = "url"
	SecretToken       = "token"
	SecretOwnerPrefix = "ownerPrefix"
	SecretCA          = "ca.crt"
	SecretFingerprint = "fingerprint"
)

// APIEndpoint is where the workload cluster's API server is reached. A port alone is
// what a ClusterClass may have, whose patches add the host.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.host) || has(self.port)",message="host and port go together; 6443 is the usual port"
type APIEndpoint struct {
	// host is an address or a DNS name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Host string `json:"host,omitempty"`
	// port is TCP's.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// Valid reports whether both parts are there.
func (e APIEndpoint) Valid() bool { return e.Host != "" && e.Port > 0 }

// ObjectMeta is what a template gives to the objects that are made from it.
type ObjectMeta = clusterv1.ObjectMeta
