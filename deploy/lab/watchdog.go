package lab

import (
	"io"
	"os"
	"os/exec"
	"syscall"
)

// A process that is killed, panics or calls os.Exit closes nothing. The watchdog
// is a shell that waits at a pipe: end of file without the word "keep" means
// that the lab's owner died, and the shell takes the lab down. (PDEATHSIG would
// follow the thread that started QEMU, and Go threads come and go.)
const watchdogScript = `
read -r word && [ "$word" = keep ] && exit 0
for f in /run/netns/"$1" /run/netns/"$1"-*; do
	[ -e "$f" ] || continue
	n=${f##*/}
	ip netns pids "$n" | xargs -r kill -9
	ip netns del "$n"
	rm -rf "/etc/netns/$n"
done
rm -rf "$2" "$3"
`

type watchdog struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// startWatchdog guards the namespaces called ns and ns-*, and removes the
// directories with them; an empty name is no directory.
func startWatchdog(ns, runDir, tempDir string) (*watchdog, error) {
	cmd := exec.Command("sh", "-c", watchdogScript, "rackstrap-lab-watchdog", ns, runDir, tempDir)
	// Ctrl-C in a terminal goes to the process group; the watchdog must outlive it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = os.Environ()
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &watchdog{cmd: cmd, pipe: pipe}, nil
}

// dismiss tells the watchdog to leave everything as it is.
func (w *watchdog) dismiss() error {
	_, err := io.WriteString(w.pipe, "keep\n")
	if cerr := w.pipe.Close(); err == nil {
		err = cerr
	}
	if werr := w.cmd.Wait(); err == nil {
		err = werr
	}
	return err
}
