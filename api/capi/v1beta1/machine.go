package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// RackstrapMachine turns one free Hardware of the appliance into a Machine's node, and
// gives it back.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=rackstrapmachines,scope=Namespaced,categories=cluster-api,shortName=rsm
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']"
// +kubebuilder:printcolumn:name="Hardware",type="string",JSONPath=".status.hardware.name"
// +kubebuilder:printcolumn:name="State",type="string",JSONPath=".status.hardware.state"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].message"
// +kubebuilder:printcolumn:name="ProviderID",type="string",priority=1,JSONPath=".spec.providerID"
// +kubebuilder:printcolumn:name="Failure domain",type="string",priority=1,JSONPath=".status.failureDomain"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type RackstrapMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what you want.
	// +required
	Spec RackstrapMachineSpec `json:"spec,omitempty,omitzero"`
	// status is what is.
	// +optional
	Status RackstrapMachineStatus `json:"status,omitempty,omitzero"`
}

// RackstrapMachineSpec says which Hardware, and what is installed on it.
//
// There is no field failureDomain: the Machine's own counts, and the Cluster API would
// copy one from here over it.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.claimID) || (has(self.claimID) && self.claimID == oldSelf.claimID)",message="claimID is written once by the provider"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.providerID) && self.providerID == oldSelf.providerID)",message="providerID is written once by the provider"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.appliance) || !has(oldSelf.claimID) || (has(self.appliance) && self.appliance == oldSelf.appliance)",message="appliance stays as it is while there is a claim"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.installation) || (has(self.installation) && self.installation == oldSelf.installation)",message="installation is written once by the provider"
// +kubebuilder:validation:XValidation:rule="!has(self.claimID) || has(self.appliance)",message="a claim needs appliance, which says where it was made"
// +kubebuilder:validation:XValidation:rule="!has(self.installation) || has(self.claimID)",message="installation goes with claimID: it says which appliance has the claim"
// +kubebuilder:validation:XValidation:rule="!has(self.waitForPhoneHome) || !self.waitForPhoneHome || !has(self.bootstrapFormat) || self.bootstrapFormat == 'cloud-config'",message="a system that is set up by Ignition or Talos does not phone home; leave waitForPhoneHome out"
type RackstrapMachineSpec struct {
	// providerID is rackstrap://INSTALLATION/HARDWARE-UID/CLAIM. The provider writes it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`
	// claimID is the id of this machine's claim in the appliance. The provider writes it
	// before it asks for a Hardware, so that asking again never takes another one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClaimID string `json:"claimID,omitempty"`
	// installation is the appliance's own id, as `rackstrap version` prints it. The provider
	// writes it with claimID, so that a Secret which leads to another appliance later is
	// noticed: that one does not know the claim.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Installation string `json:"installation,omitempty"`
	// appliance is the RackstrapCluster's at the time of the claim. The provider writes it.
	// +optional
	Appliance ApplianceReference `json:"appliance,omitempty,omitzero"`

	HardwareClaim `json:",inline"`
	Install       `json:",inline"`

	// reuse keeps the Hardware of a machine that is deleted for the one that replaces it.
	// +optional
	Reuse Reuse `json:"reuse,omitempty,omitzero"`
}

// HardwareClaim says which Hardware will do.
type HardwareClaim struct {
	// hardwareName wants this Hardware and no other.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	HardwareName string `json:"hardwareName,omitempty"`
	// hardwareSelector picks by the Hardware's labels.
	// +optional
	HardwareSelector *metav1.LabelSelector `json:"hardwareSelector,omitempty"`
	// requirements are what must be in the machine, by what was found in it.
	// +optional
	Requirements Requirements `json:"requirements,omitempty,omitzero"`
	// preferred weighs the Hardware that fits: the largest sum is taken. A negative weight
	// avoids.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=14
	Preferred []PreferredHardware `json:"preferred,omitempty"`
	// spread avoids the Hardware that has the same value of a label as those of the other
	// machines of the same MachineDeployment or control plane.
	// +optional
	Spread Spread `json:"spread,omitempty,omitzero"`
}

// Requirements are what must be in a machine. What is left out is not asked for.
// +kubebuilder:validation:MinProperties=1
type Requirements struct {
	// architecture of the processor; amd64 or arm64.
	// +optional
	// +kubebuilder:validation:Enum=amd64;arm64
	Architecture string `json:"architecture,omitempty"`
	// cpus is the least number of logical CPUs.
	// +optional
	// +kubebuilder:validation:Minimum=1
	CPUs int32 `json:"cpus,omitempty"`
	// memory is the least that was bought: 64Gi fits a machine sold with 64 GiB.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// disks must all be there, each another disk.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Disks []DiskRequirement `json:"disks,omitempty"`
	// nics must all be there, each another one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	NICs []NICRequirement `json:"nics,omitempty"`
}

// DiskRequirement asks for disks of one kind.
type DiskRequirement struct {
	// count of them; 1 where left out.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Count int32 `json:"count,omitempty"`
	// size is the least of each.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// transport is nvme, sata, sas, virtio, …
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Transport string `json:"transport,omitempty"`
	// rotational false asks for flash, true for spinning disks.
	// +optional
	Rotational *bool `json:"rotational,omitempty"`
}

// NICRequirement asks for network interfaces of one kind.
type NICRequirement struct {
	// count of them; 1 where left out.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Count int32 `json:"count,omitempty"`
	// mbps is the least speed of the link.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Mbps int32 `json:"mbps,omitempty"`
}

// PreferredHardware adds a weight to the Hardware with these labels.
type PreferredHardware struct {
	// weight, -100 to 100 and not 0.
	// +required
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:validation:XValidation:rule="self != 0",message="weight 0 prefers nothing"
	Weight int32 `json:"weight,omitempty"`
	// hardwareSelector picks by labels.
	// +required
	HardwareSelector metav1.LabelSelector `json:"hardwareSelector,omitempty,omitzero"`
}

// Spread keeps machines of one owner apart.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.label)",message="weight says how much the same value of label costs; give label too"
type Spread struct {
	// label whose values are kept apart: rack, power-feed, …
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Label string `json:"label,omitempty"`
	// weight that one machine with the same value costs; 10 where left out.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight,omitempty"`
}

// Install says what is put on the machine.
type Install struct {
	// image is the operating system.
	// +required
	Image Image `json:"image,omitempty,omitzero"`
	// disk is smallest, largest, /dev/… or serial=…; the only one where left out.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Disk string `json:"disk,omitempty"`
	// bootstrapFormat of the bootstrap data, where the bootstrap provider does not say
	// it: cloud-config (also where left out), ignition or talos.
	// +optional
	// +kubebuilder:validation:Enum=cloud-config;ignition;talos
	BootstrapFormat string `json:"bootstrapFormat,omitempty"`
	// template is a Template of the appliance that is used instead of the built-in one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Template string `json:"template,omitempty"`
	// parameters of the template, besides image, disk and the data. They are not secret.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Parameters map[string]apiextensionsv1.JSON `json:"parameters,omitempty"`
	// metaData are more keys of the NoCloud meta-data, read as ds.meta_data.KEY.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	MetaData map[string]string `json:"metaData,omitempty"`
	// network of the installed system. Made from the Hardware's record where left out.
	// +optional
	Network Network `json:"network,omitempty,omitzero"`
	// waitForPhoneHome: the machine counts as installed when its system has called. Not
	// with Ignition and Talos.
	// +optional
	WaitForPhoneHome *bool `json:"waitForPhoneHome,omitempty"`
}

// Image names an operating system in one of three ways.
// +kubebuilder:validation:XValidation:rule="(has(self.name)?1:0)+(has(self.url)?1:0)+(has(self.lookup)?1:0) == 1",message="give one of name, url and lookup"
// +kubebuilder:validation:XValidation:rule="!has(self.checksum) || has(self.url)",message="checksum goes with url; an image of the appliance has its own"
type Image struct {
	// name of an image of the appliance.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// url that the machine fetches.
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://`
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// checksum of url: sha256:HEX, sha512:HEX, md5:HEX (with a warning; it protects from
	// accidents only), or the URL of a list of checksums.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^(sha256:[0-9a-fA-F]{64}|sha512:[0-9a-fA-F]{128}|md5:[0-9a-fA-F]{32}|https?://.+)$`
	// +kubebuilder:validation:MaxLength=2048
	Checksum string `json:"checksum,omitempty"`
	// lookup finds the image of the appliance that has an operating system and the
	// Machine's Kubernetes version.
	// +optional
	Lookup *ImageLookup `json:"lookup,omitempty"`
}

// ImageLookup finds one image of the appliance, by what `rackstrap image add` was told
// with --os, --os-version and --kubernetes-version.
type ImageLookup struct {
	// os, such as debian.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	OS string `json:"os,omitempty"`
	// version of it, such as 12.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version,omitempty"`
	// format, where given, looks for the image of that name instead: {os}, {version} and
	// {kubernetesVersion} are replaced, and what cannot be in a name becomes a dash:
	// {os}-{version}-kube-{kubernetesVersion} is debian-12-kube-v1-36-3.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Format string `json:"format,omitempty"`
}

// Network is that of the installed system.
// +kubebuilder:validation:XValidation:rule="!(has(self.config) && has(self.addresses))",message="config is the whole configuration; give it or addresses"
// +kubebuilder:validation:MinProperties=1
type Network struct {
	// config is a cloud-init network-config, version 2, in YAML. It is the same for all
	// machines of a template.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Config string `json:"config,omitempty"`
	// addresses come from pools, by IPAddressClaims (ipam.cluster.x-k8s.io).
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Addresses []PoolAddress `json:"addresses,omitempty"`
	// nameservers, for all interfaces.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=64
	Nameservers []string `json:"nameservers,omitempty"`
	// searchDomains, for all interfaces.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	SearchDomains []string `json:"searchDomains,omitempty"`
}

// PoolAddress is one address from a pool; a dual-stack interface has two.
type PoolAddress struct {
	// poolRef names the pool, of any IPAM provider.
	// +required
	PoolRef PoolReference `json:"poolRef,omitempty,omitzero"`
	// interface is the index of the Hardware's network interface, from 0, in the order of
	// its record; the one it boots from where left out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	Interface *int32 `json:"interface,omitempty"`
	// gateway false: the pool's gateway is no default route of this interface.
	// +optional
	Gateway *bool `json:"gateway,omitempty"`
}

// PoolReference names a pool in the same namespace, or one that has none.
type PoolReference struct {
	// apiGroup of the pool, such as ipam.cluster.x-k8s.io.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`
	// kind of the pool, such as InClusterIPPool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// name of the pool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// Reuse says what becomes of the Hardware of a machine that is deleted.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.disks)",message="seconds says how long the Hardware is kept; say with disks what becomes of it"
type Reuse struct {
	// disks: Wipe wipes them as always, and the machine that replaces it takes the same
	// Hardware before any other. Keep leaves them as they are: the install writes its own
	// disk only, and nobody else gets the Hardware before it is wiped. Left out: nothing
	// is reused.
	// +optional
	// +kubebuilder:validation:Enum=Wipe;Keep
	Disks ReuseDisks `json:"disks,omitempty"`
	// seconds that the Hardware is kept; 3600 where left out.
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	Seconds int32 `json:"seconds,omitempty"`
}

// ReuseDisks says what becomes of the disks.
type ReuseDisks string

// What may become of them.
const (
	ReuseWipe ReuseDisks = "Wipe"
	ReuseKeep ReuseDisks = "Keep"
)

// RackstrapMachineStatus is what is known of a machine. All of it can be read again
// from the appliance: a move to another management cluster loses nothing.
type RackstrapMachineStatus struct {
	// conditions; Ready sums them up.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// initialization is read by the Cluster API.
	// +optional
	Initialization Initialization `json:"initialization,omitempty,omitzero"`
	// addresses of the machine.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`
	// failureDomain is where the Hardware stands.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`
	// hardware is what the appliance says of the machine.
	// +optional
	Hardware *HardwareStatus `json:"hardware,omitempty"`
}

// HardwareStatus is what the appliance says of a machine.
type HardwareStatus struct {
	// name of the Hardware record.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// uid of it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`
	// state of its life: available, provisioning, provisioned, releasing, failed.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	State string `json:"state,omitempty"`
	// workflow that installs, or installed, its system.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Workflow string `json:"workflow,omitempty"`
	// power is on, off or unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Power string `json:"power,omitempty"`
}

// RackstrapMachineList is a list of them.
// +kubebuilder:object:root=true
type RackstrapMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RackstrapMachine `json:"items"`
}

// RackstrapMachineTemplate is what RackstrapMachines are made from. Its spec does not
// change; make a new one for a rollout.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=rackstrapmachinetemplates,scope=Namespaced,categories=cluster-api,shortName=rsmt
// +kubebuilder:printcolumn:name="Fits",type="integer",JSONPath=".status.fits"
// +kubebuilder:printcolumn:name="Free",type="integer",JSONPath=".status.free"
// +kubebuilder:printcolumn:name="CPU",type="string",JSONPath=".status.capacity.cpu"
// +kubebuilder:printcolumn:name="Memory",type="string",JSONPath=".status.capacity.memory"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type RackstrapMachineTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what you want.
	// +required
	Spec RackstrapMachineTemplateSpec `json:"spec,omitempty,omitzero"`
	// status is what is.
	// +optional
	Status RackstrapMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// RackstrapMachineTemplateSpec has the template.
type RackstrapMachineTemplateSpec struct {
	// template of the machines.
	// +required
	Template RackstrapMachineTemplateResource `json:"template,omitempty,omitzero"`
}

// RackstrapMachineTemplateResource is one machine, not made yet.
type RackstrapMachineTemplateResource struct {
	// metadata is copied to the machines.
	// +optional
	ObjectMeta ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is copied to the machines.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.claimID) && !has(self.installation) && !has(self.providerID) && !has(self.appliance)",message="claimID, installation, providerID and appliance are written by the provider, to machines; leave them out of a template"
	Spec RackstrapMachineSpec `json:"spec,omitempty,omitzero"`
}

// RackstrapMachineTemplateStatus tells the autoscaler what a machine of the template
// will be, so that it can scale up from zero.
type RackstrapMachineTemplateStatus struct {
	// conditions; Ready says whether the appliance was asked.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// capacity is the least of what the Hardware that fits has: cpu, memory and
	// ephemeral-storage.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// nodeInfo says what system runs on it.
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitempty,omitzero"`
	// fits counts the Hardware that the template could have if nobody else had any.
	// +optional
	Fits *int32 `json:"fits,omitempty"`
	// free counts what it could have now.
	// +optional
	Free *int32 `json:"free,omitempty"`
}

// NodeInfo says what system runs on a machine.
// +kubebuilder:validation:MinProperties=1
type NodeInfo struct {
	// architecture of the processor.
	// +optional
	// +kubebuilder:validation:Enum=amd64;arm64
	Architecture string `json:"architecture,omitempty"`
	// operatingSystem is linux.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	OperatingSystem string `json:"operatingSystem,omitempty"`
}

// RackstrapMachineTemplateList is a list of them.
// +kubebuilder:object:root=true
type RackstrapMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RackstrapMachineTemplate `json:"items"`
}

// GetConditions is what the Cluster API's helpers read.
func (m *RackstrapMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions is what they write.
func (m *RackstrapMachine) SetConditions(x []metav1.Condition) { m.Status.Conditions = x }

// GetConditions is what the Cluster API's helpers read.
func (m *RackstrapMachineTemplate) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions is what they write.
func (m *RackstrapMachineTemplate) SetConditions(x []metav1.Condition) { m.Status.Conditions = x }
