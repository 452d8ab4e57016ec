package sim

import "strings"

// verdict is what a boot script has a machine do.
type verdict struct {
	what verdictKind
	// args is the kernel's command line.
	args string
}

type verdictKind string

const (
	bootKernel verdictKind = "kernel"
	nextDevice verdictKind = "next device" // the firmware goes on with its order
	switchOff  verdictKind = "power off"
	startAgain verdictKind = "restart"
	askAgain   verdictKind = "ask again" // for an address and then for the script
)

// readScript says what a boot script of ours does where nothing fails, without being an
// iPXE: it looks for the first command that leaves the script.
func readScript(script string) verdict {
	for line := range strings.Lines(script) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "kernel":
			return verdict{bootKernel, line}
		case "dhcp":
			return verdict{what: askAgain}
		case "exit", "sanboot":
			return verdict{what: nextDevice}
		case "poweroff":
			return verdict{what: switchOff}
		case "reboot":
			return verdict{what: startAgain}
		}
	}
	return verdict{what: nextDevice}
}
