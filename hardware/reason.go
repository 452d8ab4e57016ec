package hardware

import "sort"

// Reason says why a packet or a machine got its answer. The set is closed: the
// same value is the log attribute, the metric label, the timeline's sentence and
// the heading in deploy/docs/troubleshooting.md.
type Reason string

// What DHCP decided.
const (
	ReasonMalformed       Reason = "malformed"
	ReasonNotForUs        Reason = "not-for-us"
	ReasonNotEthernet     Reason = "not-ethernet"
	ReasonUnknownMachine  Reason = "unknown-machine"
	ReasonNoSubnet        Reason = "no-subnet"
	ReasonSubnetOff       Reason = "subnet-off"
	ReasonNICOff          Reason = "nic-off"
	ReasonNoReservation   Reason = "no-reservation"
	ReasonOtherServer     Reason = "other-server"
	ReasonWrongAddress    Reason = "wrong-address"
	ReasonNoServerAddress Reason = "no-server-address"
	ReasonTwoAddresses    Reason = "two-server-addresses"
	ReasonOffered         Reason = "offered"
	ReasonAcked           Reason = "acked"
	ReasonInformed        Reason = "informed"
	ReasonReleased        Reason = "released"
	ReasonDeclined        Reason = "declined"
	ReasonRateLimited     Reason = "rate-limited"
	ReasonStoreFailed     Reason = "store-failed"
	ReasonBootProgram     Reason = "boot-program"
	ReasonBootScript      Reason = "boot-script"
	ReasonUnknownFirmware Reason = "unknown-firmware"
	ReasonProgramLoop     Reason = "boot-program-loop"
	ReasonNoBootAssets    Reason = "no-boot-assets"
	ReasonNoProgram       Reason = "no-boot-program"
	ReasonPoolEmpty       Reason = "pool-empty"
	ReasonPoolShare       Reason = "pool-share-used"
	ReasonAddressInUse    Reason = "address-in-use"
	ReasonAddressLent     Reason = "address-lent"
	ReasonOtherDHCP       Reason = "other-dhcp-server"
	ReasonNoOtherDHCP     Reason = "no-other-dhcp-server"
	ReasonProxyOffered    Reason = "proxy-offered"
	ReasonProxyAnswered   Reason = "proxy-answered"
	ReasonProxySilent     Reason = "proxy-silent"
	ReasonLeaseRevoked    Reason = "lease-revoked"
	ReasonNoLease         Reason = "no-lease"
	ReasonDeclinesIgnored Reason = "declines-ignored"
)

// What a machine boots next.
const (
	ReasonPXEDenied       Reason = "pxe-denied"
	ReasonWorkflowDenied  Reason = "workflow-denied"
	ReasonWorkflowActive  Reason = "workflow-active"
	ReasonPendingApproval Reason = "pending-approval"
	ReasonProvisioned     Reason = "provisioned"
	ReasonNothingToDo     Reason = "nothing-to-do"
	ReasonLastFailed      Reason = "last-workflow-failed"
	ReasonOnHold          Reason = "on-hold"
	ReasonRetired         Reason = "retired"
	ReasonOwnScript       Reason = "own-script"
	ReasonDiscovery       Reason = "discovery"
	ReasonBootLoop        Reason = "boot-loop"
	ReasonNotStopped      Reason = "not-stopped"
	ReasonReserved        Reason = "reserved"
	ReasonLeftover        Reason = "leftover"
)

// What happened in a boot.
const (
	ReasonBootStarted     Reason = "boot-started"
	ReasonProgramSent     Reason = "boot-program-sent"
	ReasonProgramFailed   Reason = "boot-program-failed"
	ReasonFileNotFound    Reason = "file-not-found"
	ReasonBadName         Reason = "bad-file-name"
	ReasonScriptSent      Reason = "boot-script-sent"
	ReasonScriptNoToken   Reason = "script-without-token"
	ReasonKernelSent      Reason = "kernel-sent"
	ReasonInitramfsSent   Reason = "initramfs-sent"
	ReasonWorkerConnected Reason = "worker-connected"
	ReasonWorkerLost      Reason = "worker-lost"
	ReasonWorkerTooOld    Reason = "worker-too-old"
	ReasonTokenUnknown    Reason = "token-unknown"
	ReasonTokenExpired    Reason = "token-expired"
	ReasonTokenStolen     Reason = "token-other-key"
	ReasonTokenSuperseded Reason = "token-superseded"
	ReasonTokenSecond     Reason = "token-second-key"
	ReasonFactsReported   Reason = "facts-reported"
	ReasonSentToDisk      Reason = "sent-to-disk"
	ReasonOSSeen          Reason = "os-seen"
	ReasonMetadataRead    Reason = "metadata-read"
	ReasonOSUp            Reason = "os-up"
	ReasonChainGRUB       Reason = "chain-grub"
	ReasonOwnNeedsIPXE    Reason = "own-script-needs-ipxe"
	ReasonPaced           Reason = "download-paced"
	ReasonFactsChanged    Reason = "facts-changed"
	ReasonConflict        Reason = "identity-conflict"
	ReasonDiscovered      Reason = "discovered"
	ReasonEnrolFull       Reason = "enrolment-full"
	ReasonRuleApplied     Reason = "rule-applied"
	ReasonRuleFailed      Reason = "rule-failed"
	ReasonRuleLimit       Reason = "rule-limit"
)

// What happened to a workflow.
const (
	ReasonWorkflowCreated   Reason = "workflow-created"
	ReasonWorkflowStarted   Reason = "workflow-started"
	ReasonActionStarted     Reason = "action-started"
	ReasonActionSucceeded   Reason = "action-succeeded"
	ReasonActionFailed      Reason = "action-failed"
	ReasonActionTimeout     Reason = "action-timeout"
	ReasonActionRetry       Reason = "action-retry"
	ReasonActionInterrupted Reason = "action-interrupted"
	ReasonWorkflowSucceeded Reason = "workflow-succeeded"
	ReasonWorkflowFailed    Reason = "workflow-failed"
	ReasonWorkflowTimeout   Reason = "workflow-timeout"
	ReasonWorkflowCancelled Reason = "workflow-cancelled"
	ReasonRecordCreated     Reason = "record-created"
	ReasonRecordChanged     Reason = "record-changed"
	ReasonRecordDeleted     Reason = "record-deleted"
	ReasonStateChanged      Reason = "state-changed"
	ReasonImageReady        Reason = "image-ready"
	ReasonImageFailed       Reason = "image-failed"
	ReasonWeakChecksum      Reason = "weak-checksum"
)

// What happened to a machine's power.
const (
	ReasonPowerAsked  Reason = "power-asked"
	ReasonPowerDone   Reason = "power-done"
	ReasonPowerFailed Reason = "power-failed"
	ReasonPowerByHand Reason = "power-by-hand"
)

// What happened in a machine's life.
const (
	ReasonAccepted         Reason = "accepted"
	ReasonClaimed          Reason = "claimed"
	ReasonClaimEnded       Reason = "claim-ended"
	ReasonMaintenance      Reason = "maintenance"
	ReasonMaintenanceEnded Reason = "maintenance-ended"
	ReasonReleaseAsked     Reason = "release-asked"
	ReasonReleasing        Reason = "releasing"
	ReasonReleasedUnwiped  Reason = "released-unwiped"
	ReasonStopped          Reason = "stopped"
	ReasonReservationEnded Reason = "reservation-ended"
	ReasonUnhealthy        Reason = "unhealthy"
	ReasonWiped            Reason = "wipe-verified"
	ReasonNotWiped         Reason = "wipe-not-verified"
	ReasonQuarantined      Reason = "quarantined"
	ReasonRetiredNow       Reason = "retired-by-operator"
	ReasonDropped          Reason = "record-dropped"
	ReasonRestored         Reason = "restored-from-backup"
	ReasonOSNotUp          Reason = "os-not-up"
	ReasonIssueOpened      Reason = "issue-opened"
	ReasonIssueClosed      Reason = "issue-closed"
	ReasonIssueChanged     Reason = "issue-changed"
)

// What was asked through the API.
const (
	ReasonAPIChange    Reason = "api-change"
	ReasonAPIRefused   Reason = "api-refused"
	ReasonSignedIn     Reason = "signed-in"
	ReasonSignedOut    Reason = "signed-out"
	ReasonSessionEnded Reason = "session-ended"
)

// reasons has the sentence of every Reason, as the timeline prints it.
var reasons = map[Reason]string{
	ReasonMalformed:       "the packet is not valid DHCP",
	ReasonNotForUs:        "the packet is not a request to a server",
	ReasonNotEthernet:     "the client's hardware address is not an Ethernet MAC",
	ReasonUnknownMachine:  "no Hardware record has this MAC",
	ReasonNoSubnet:        "no Subnet record covers the network the packet came from",
	ReasonSubnetOff:       "the Subnet's mode is off",
	ReasonNICOff:          "the record says dhcp: false for this NIC",
	ReasonNoReservation:   "the record reserves no address in this Subnet for this NIC",
	ReasonOtherServer:     "the client chose another DHCP server",
	ReasonWrongAddress:    "the client asked for an address that is not its own",
	ReasonNoServerAddress: "we have no address of our own that this client could reach",
	ReasonTwoAddresses:    "two of our addresses fit this client; set the Subnet's advertise",
	ReasonOffered:         "offered an address",
	ReasonAcked:           "confirmed the address",
	ReasonInformed:        "answered a request for options only",
	ReasonReleased:        "the client gave its address back",
	ReasonDeclined:        "the client says its address is in use by another machine",
	ReasonRateLimited:     "too many packets from strangers",
	ReasonStoreFailed:     "the store refused to write",
	ReasonBootProgram:     "named a boot program",
	ReasonBootScript:      "named the boot script",
	ReasonUnknownFirmware: "the firmware's architecture code has no boot program",
	ReasonProgramLoop:     "our boot program started and asked for itself again",
	ReasonNoBootAssets:    "this binary has no boot programs inside; run `make assets` and build again",

	ReasonPXEDenied:       "the record says allowPXE: false",
	ReasonWorkflowDenied:  "the record says allowWorkflow: false",
	ReasonWorkflowActive:  "a workflow waits for this machine",
	ReasonPendingApproval: "the machine is pending; accept it first",
	ReasonProvisioned:     "the machine is provisioned and boots its disk",
	ReasonNothingToDo:     "no workflow for this machine; it boots its disk",
	ReasonLastFailed:      "the last workflow of this machine failed; start a new one",
	ReasonOnHold:          "the machine is on hold and waits for a human",
	ReasonRetired:         "the machine is retired",

	ReasonBootStarted:     "the firmware asked for a boot",
	ReasonProgramSent:     "sent the boot program",
	ReasonProgramFailed:   "the boot program was not taken to its end",
	ReasonFileNotFound:    "a file was asked for that we do not have",
	ReasonBadName:         "a file name was refused",
	ReasonScriptSent:      "sent the boot script",
	ReasonScriptNoToken:   "sent a boot script without a token: the asking address is not this boot's",
	ReasonKernelSent:      "sent the kernel",
	ReasonInitramfsSent:   "sent the initramfs",
	ReasonWorkerConnected: "the worker is connected",
	ReasonWorkerLost:      "the worker's connection ended",
	ReasonWorkerTooOld:    "the worker speaks a protocol that is too old and was told to reboot",
	ReasonTokenUnknown:    "a worker came with a token that is not ours",
	ReasonTokenExpired:    "a worker came with a token that has expired",
	ReasonTokenStolen:     "a second key came with this boot's token; the machine is on hold",
	ReasonTokenSuperseded: "a worker came with the token of an earlier boot",
	ReasonTokenSecond:     "a second key came with the token of a machine without a record and was refused",
	ReasonFactsReported:   "the worker reported what is in the machine",
	ReasonSentToDisk:      "told the machine to boot its disk",
	ReasonOSSeen:          "the installed system asked for its address",
	ReasonMetadataRead:    "the installed system read its metadata",
	ReasonOSUp:            "the installed system phoned home",

	ReasonWorkflowCreated:   "workflow created",
	ReasonWorkflowStarted:   "workflow started",
	ReasonActionStarted:     "action started",
	ReasonActionSucceeded:   "action done",
	ReasonActionFailed:      "action failed",
	ReasonActionTimeout:     "action ran out of time",
	ReasonActionRetry:       "action will be tried again",
	ReasonActionInterrupted: "the machine restarted during the action",
	ReasonWorkflowSucceeded: "workflow done",
	ReasonWorkflowFailed:    "workflow failed",
	ReasonWorkflowTimeout:   "workflow ran out of time",
	ReasonWorkflowCancelled: "workflow cancelled",
	ReasonRecordCreated:     "record created",
	ReasonRecordChanged:     "record changed",
	ReasonRecordDeleted:     "record deleted",
	ReasonStateChanged:      "the machine's state changed",

	ReasonAPIChange:  "somebody asked for a change",
	ReasonAPIRefused: "somebody may not do what they asked for",

	ReasonSignedIn:     "somebody signed in",
	ReasonSignedOut:    "somebody signed out",
	ReasonSessionEnded: "a session in a browser ended",

	ReasonPowerAsked:  "asked the power controller",
	ReasonPowerDone:   "the power controller did as asked",
	ReasonPowerFailed: "the power controller refused, or did not answer",
	ReasonPowerByHand: "a person must switch the machine",

	ReasonAccepted:         "a human vouched for the machine",
	ReasonClaimed:          "somebody claimed the machine",
	ReasonClaimEnded:       "the claim on the machine ended",
	ReasonMaintenance:      "a human works on the machine",
	ReasonMaintenanceEnded: "maintenance ended",
	ReasonReleaseAsked:     "the machine was given back",
	ReasonReleasing:        "the machine was given back and boots nothing until its disks are wiped",
	ReasonReleasedUnwiped:  "the machine was given up without a wipe and is on hold",
	ReasonStopped:          "what the last owner installed runs no more",
	ReasonNotStopped:       "it is not known that what the last owner installed runs no more; the machine is on hold",
	ReasonReserved:         "the machine is kept for the next claim of a group",
	ReasonReservationEnded: "the machine is not kept for a group any more",
	ReasonLeftover:         "the system of an owner who gave the machine back must not run; wipe it first",
	ReasonUnhealthy:        "the last owner said that the machine is not healthy; it is not picked any more",
	ReasonWiped:            "every disk was wiped and read back",
	ReasonNotWiped:         "the wipe proved nothing; the machine is not available",
	ReasonQuarantined:      "too many installs or wipes failed in a row; the machine is not picked any more",
	ReasonRetiredNow:       "the machine was retired",
	ReasonDropped:          "the record was made free to be deleted, whatever the machine did",
	ReasonRestored:         "the records were restored from a backup, and the machine may have been installed since",
	ReasonOSNotUp:          "the installed system did not phone home in time",
	ReasonIssueOpened:      "something keeps the machine from getting on",
	ReasonIssueClosed:      "an issue is gone",
	ReasonIssueChanged:     "an issue has other words now",
	ReasonNoProgram:        "there is no boot program for this kind of firmware",
	ReasonPoolEmpty:        "every address of the pool is taken",
	ReasonPoolShare:        "the share of the pool for machines without a record is taken",
	ReasonAddressInUse:     "somebody else uses an address of ours",
	ReasonAddressLent:      "the address that is reserved for it is still lent to another machine",
	ReasonOtherDHCP:        "another DHCP server answers in this network, or is still looked for",
	ReasonNoOtherDHCP:      "the Subnet's other DHCP server does not answer",
	ReasonProxyOffered:     "offered a boot program beside the other DHCP server",
	ReasonProxyAnswered:    "named the boot program on port 4011",
	ReasonProxySilent:      "the Subnet's other DHCP server answers this packet",
	ReasonLeaseRevoked:     "the lease was taken back",
	ReasonNoLease:          "the client has no lease of the address",
	ReasonDeclinesIgnored:  "too many addresses were said to be in use; this one stays in the pool",
	ReasonOwnScript:        "the record has an iPXE script of its own",
	ReasonDiscovery:        "the machine has not been accepted; it boots the worker to report what is in it",
	ReasonBootLoop:         "the machine booted from the network too often without getting on, and is given nothing",
	ReasonChainGRUB:        "boots through the signed shim and GRUB",
	ReasonOwnNeedsIPXE:     "the record's own iPXE script cannot run in GRUB",
	ReasonPaced:            "the download waits for its turn",
	ReasonFactsChanged:     "something in the machine is not what it was",
	ReasonConflict:         "the machine may not be the one that its record means",
	ReasonDiscovered:       "a machine without a record reported itself",
	ReasonEnrolFull:        "too many discovered machines wait to be accepted",
	ReasonRuleApplied:      "a rule applied to the machine",
	ReasonRuleFailed:       "a rule accepted the machine and its workflow cannot be started",
	ReasonRuleLimit:        "rules have accepted as many machines as they may for now",
	ReasonImageReady:       "the image can be installed now",
	ReasonImageFailed:      "the image cannot be used",
	ReasonWeakChecksum:     "the image was compared with MD5, which protects from accidents only",
}

// Sentence is the Reason in words.
func (r Reason) Sentence() string {
	if s, ok := reasons[r]; ok {
		return s
	}
	return string(r)
}

// Known reports whether r is one of ours.
func (r Reason) Known() bool { _, ok := reasons[r]; return ok }

// Reasons lists the closed set, sorted.
func Reasons() []Reason {
	out := make([]Reason, 0, len(reasons))
	for r := range reasons {
		out = append(out, r)
	}
	sort.Slice(out, func(i, j int) bool { return out[i] < out[j] })
	return out
}
