package workflow

import "github.com/rackstrap/rackstrap/hardware"

// What an operator types, in one place: an answer that names a command which does
// not exist is worse than none. A test of the command line tries them all.

func typeTimeline(name string) string   { return "rackstrap timeline " + name }
func typeFollow(name string) string     { return "rackstrap timeline " + name + " --follow" }
func typeExplain(name string) string    { return "rackstrap explain " + name }
func typeValidate(name string) string   { return "rackstrap validate " + name }
func typeGet(name string) string        { return "rackstrap hardware get " + name }
func typeAccept(name string) string     { return "rackstrap hardware accept " + name }
func typeUnhold(name string) string     { return "rackstrap hardware unhold " + name }
func typeMaintained(name string) string { return "rackstrap hardware maintenance " + name + " --off" }

func typeWaitState(name string, s hardware.State) string {
	return "rackstrap wait " + name + " --state " + string(s)
}
func typeDelete(name string) string  { return "rackstrap hardware delete " + name }
func typeRelease(name string) string { return "rackstrap release " + name }
func typePower(name, action string) string {
	cmd := "rackstrap power " + name + " " + action
	if action == "status" {
		return cmd
	}
	return cmd + " --next-boot network" // its firmware may prefer the disk
}

func typeProvision(name, image string) string {
	return "rackstrap provision " + name + " --image " + image
}
func typeCancel(workflow string) string   { return "rackstrap workflow cancel " + workflow }
func typeWorkflow(workflow string) string { return "rackstrap workflow get " + workflow }
func typeLogs(workflow string) string     { return "rackstrap workflow logs " + workflow }
func typeSubnet(subnet string) string     { return "rackstrap subnet get " + subnet }

const (
	typeStrangers = "rackstrap stranger list"
	typePending   = "rackstrap hardware list --state pending"
	typeSubnets   = "rackstrap subnet list"
	typeLeases    = "rackstrap lease list"
	typeImages    = "rackstrap image list"
	typeTemplates = "rackstrap template list"
	typeDaemonLog = "journalctl -u rackstrap --since -1h"
)

// Typed are all commands that Issues, Explain and Validate may tell people to type,
// for a machine, workflow, subnet and image of the given name.
func Typed(name string) []string {
	return []string{
		typeTimeline(name), typeFollow(name), typeExplain(name), typeValidate(name), typeGet(name), typeAccept(name), typeUnhold(name),
		typeMaintained(name), typeWaitState(name, hardware.StateAvailable), typeDelete(name), typeRelease(name), typePower(name, "on"), typePower(name, "cycle"), typePower(name, "status"),
		typeProvision(name, name), typeCancel(name), typeWorkflow(name), typeLogs(name), typeSubnet(name),
		typeStrangers, typePending, typeSubnets, typeLeases, typeImages, typeTemplates, typeDaemonLog,
	}
}
