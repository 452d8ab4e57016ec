package rest

import (
	"reflect"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest/openapi"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// enums are the closed sets in the bodies. A test compares them with the constants
// in the source.
func enums() map[reflect.Type][]string {
	out := map[reflect.Type][]string{}
	set(out, hardware.Roles()...)
	set(out, hardware.States()...)
	set(out, hardware.Reasons()...)
	set(out, hardware.PowerUnknown, hardware.PowerOn, hardware.PowerOff)
	set(out, hardware.SeverityError, hardware.SeverityWarning, hardware.SeverityInfo)
	set(out, hardware.TargetNone, hardware.TargetHalt, hardware.TargetDisk, hardware.TargetWorker, hardware.TargetCustom)
	set(out, hardware.ChainIPXE, hardware.ChainGRUB)
	set(out, hardware.SecureBootAuto, hardware.SecureBootOn, hardware.SecureBootOff)
	set(out, hardware.PoolAny, hardware.PoolKnown)
	set(out, hardware.LeaseStates()...)
	set(out, hardware.ConflictUUID, hardware.ConflictSerial, hardware.ConflictMAC, hardware.ConflictReplaced, hardware.ConflictNIC)
	set(out, hardware.TableGPT, hardware.TableDOS, hardware.TableNone, hardware.TableUnknown)
	set(out, hardware.ContentExt2, hardware.ContentExt3, hardware.ContentExt4, hardware.ContentXFS, hardware.ContentBtrfs, hardware.ContentVFAT,
		hardware.ContentNTFS, hardware.ContentSwap, hardware.ContentLVM2, hardware.ContentRAID, hardware.ContentLUKS)
	set(out, hardware.ScopeEnrol, hardware.ScopeIdle, hardware.ScopeWork)
	set(out, hardware.StoppedNeverRan, hardware.StoppedByPowerOff, hardware.StoppedByWorker, hardware.StoppedByHold)
	set(out, hardware.ModeReservation, hardware.ModePool, hardware.ModeProxy, hardware.ModeOff)
	set(out, hardware.FirmwareNone, hardware.FirmwareBIOS, hardware.FirmwareUEFI, hardware.FirmwareUEFIARM, hardware.FirmwareHTTP,
		hardware.FirmwareHTTPARM, hardware.FirmwareIPXE, hardware.FirmwareIPXEMin, hardware.FirmwareUnknown)
	set(out, hardware.IssueKinds()...)
	set(out, workflow.StatePending, workflow.StateRunning, workflow.StateSucceeded, workflow.StateFailed, workflow.StateTimedOut, workflow.StateCancelled)
	set(out, workflow.PurposeNone, workflow.PurposeInstall, workflow.PurposeRelease, workflow.PurposeInspect)
	set(out, workflow.ParamString, workflow.ParamInt, workflow.ParamBool, workflow.ParamSecret)
	set(out, workflow.Kinds()...)
	set(out, workflow.HoldsNothing, workflow.HoldsData, workflow.HoldsUnknown)
	set(out, workflow.ImageWaiting, workflow.ImageFetching, workflow.ImageConverting, workflow.ImageReady, workflow.ImageFailed)
	set(out, append(api.Kinds(), api.KindClaim, api.KindToken)...)
	set(out, api.OutcomeCreated, api.OutcomeChanged, api.OutcomeUnchanged, api.OutcomeDeleted, api.OutcomeDone, api.OutcomeError, api.OutcomeSkipped)
	set(out, api.PowerActionOn, api.PowerActionOff, api.PowerActionCycle, api.PowerActionStatus)
	set(out, api.Codes()...)
	set(out, api.CheckOK, api.CheckWarn, api.CheckFail)
	return out
}

func set[T ~string](all map[reflect.Type][]string, values ...T) {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	all[reflect.TypeFor[T]()] = list
}

// parameters are what the URLs are told, by name.
func parameters() map[string]openapi.Parameter {
	text := func(does string) openapi.Parameter {
		return openapi.Parameter{Description: does, Schema: &openapi.Schema{Type: "string"}}
	}
	flag := func(does string) openapi.Parameter {
		return openapi.Parameter{Description: does, Schema: &openapi.Schema{Type: "boolean"}}
	}
	count := func(does string) openapi.Parameter {
		zero := 0
		return openapi.Parameter{Description: does, Schema: &openapi.Schema{Type: "integer", Format: "int64", Minimum: &zero}}
	}
	return map[string]openapi.Parameter{
		"continue":          text("Where the last page ended, as it said."),
		"selector":          text("Of records with these labels only: key=value, key!=value, key, !key, key in (a,b), with commas."),
		"sort":              text("By what; with a dash before it the order is reversed."),
		"state":             text("In one of these states only, with commas."),
		"dryRun":            flag("Check everything, answer as if it were done, and write nothing."),
		"force":             flag("Also where it is in use; the answer names what was skipped."),
		"boot":              text("Of this boot only, by its id."),
		"hardware":          text("Of this machine only, by its name."),
		"machine":           text("Of this machine only, by its name."),
		"subnet":            text("Of this Subnet only, by its name."),
		"mac":               text("Of this MAC only."),
		"workflow":          text("Of this workflow only, by its name."),
		"by":                text("Asked for by this caller only: socket, or the name of a token."),
		"reason":            text("With this Reason only; the headings of the troubleshooting guide."),
		"after":             count("What came after this cursor only."),
		"before":            text("What began before the event with this id only."),
		"limit":             count("How many at most: records or events; of a log, bytes."),
		"offset":            count("Of a log: from this byte on."),
		"tail":              count("Of a log: its last bytes, so many at most, from the beginning of a line."),
		"follow":            flag("Of a stream: false ends it after what is kept. Of a log: true goes on with what comes until the attempt ends."),
		"checksum":          text("What the bytes must have: sha256:<hex>, sha512:<hex> or, protecting from accidents only, md5:<hex>."),
		"format":            text("The file's form, where it is not to be found by its content."),
		"arch":              text("Of this architecture: amd64 or arm64."),
		"description":       text("Words for people."),
		"active":            flag("Of claims that are held, or (false) that have ended."),
		"owner":             text("Of owners within this prefix only."),
		"claimed":           flag("Of machines that somebody has, or (false) that are free."),
		"hold":              flag("Of machines that are, or (false) are not, on hold."),
		"name":              text("Of these machines only, by their names, with commas; at most 1000."),
		"sessions":          flag("Those of signed-in browsers too."),
		"days":              count("How many days back, today counted; 30 where not given, 90 at most."),
		"maintenance":       flag("Of machines that a human works on, or (false) does not."),
		"q":                 text("With this text in what people know it by: its names, asset tag, serial number, a MAC, an address."),
		"kind":              text("Of this kind only."),
		"severity":          text("Of this severity only."),
		"image":             text("As if this image were to be installed."),
		"template":          text("As if this template were to be used."),
		"disk":              text("As if this disk were to be written."),
		"reinstall":         flag("As if the machine were to be installed anew."),
		"os":                text("Of this operating system, for example debian."),
		"osVersion":         text("Of this version of it, for example 12."),
		"kubernetesVersion": text("With this version of Kubernetes in it."),
	}
}
