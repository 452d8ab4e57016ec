package ipxe

import (
	"fmt"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// maxCommandLine is COMMAND_LINE_SIZE of Linux on x86 and arm64, less the final
// zero and what the iPXE script itself adds; what is longer, the kernel cuts off
// without a word.
const maxCommandLine = 2047 - len("vmlinuz initrd=initramfs ")

// commandLine is the worker's kernel command line, as words and as one line. What
// the worker needs comes first.
func commandLine(in *ScriptInput) (words []string, line string, err error) {
	if !in.Worker.IsValid() || in.Worker.Addr().Zone() != "" {
		return nil, "", fmt.Errorf("%q is no address for workers to connect to", in.Worker)
	}
	pairs := [][2]string{
		{"rackstrap.server", in.Worker.String()},
		{"rackstrap.http", "http://" + in.HTTP.String()},
		{"rackstrap.token", in.Token},
		{"rackstrap.ca", in.CA},
		{"rackstrap.mac", in.MAC.String()},
	}
	for _, c := range consoles(in) {
		pairs = append(pairs, [2]string{"console", c})
	}
	for _, p := range pairs {
		w, err := argument(p[0], p[1])
		if err != nil {
			return nil, "", err
		}
		words = append(words, w)
	}
	// Without quiet the kernel prints its command line, and so the token, on every
	// console. Serial lines at 115200 baud also cost seconds.
	words = append(words, "quiet")
	for i, a := range in.KernelArgs {
		if err := hardware.ValidKernelArg(a); err != nil {
			return nil, "", fmt.Errorf("spec.kernelArgs[%d]: %w", i, err)
		}
		words = append(words, a)
	}
	line = strings.Join(words, " ")
	if len(line) > maxCommandLine {
		return nil, "", fmt.Errorf("spec.kernelArgs: the kernel's command line has %d bytes, the limit is %d", len(line), maxCommandLine)
	}
	return words, line, nil
}

func consoles(in *ScriptInput) []string {
	switch {
	case len(in.Consoles) > 0:
		return in.Consoles
	case in.Arch == "arm64":
		return []string{"tty0", "ttyAMA0,115200"}
	}
	return []string{"tty0", "ttyS0,115200"}
}
