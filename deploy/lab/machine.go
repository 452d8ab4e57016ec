package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	serialLog = "serial.log"
	qemuLog   = "qemu.log"
	varsFile  = "vars.fd"
)

// Machine is a virtual machine on the LAN. It is off until PowerOn. Its methods
// may be used concurrently.
type Machine struct {
	spec MachineSpec
	lab  *Lab
	dir  string
	tap  string // empty at the switch
	plug *plug  // nil on the bridge

	power sync.Mutex // one PowerOn or PowerOff at a time

	mu   sync.Mutex
	last *session // of the latest PowerOn, nil before the first
	next BootFrom // of the next PowerOn, empty for the machine's own order
}

// session is one run of QEMU, from power-on to its end.
type session struct {
	cmd     *exec.Cmd
	qmp     *qmpConn
	console *Console
	on      time.Time
	done    chan struct{} // closed when QEMU has ended
}

// AddMachine makes a machine's port, disks and firmware variables. It is off.
func (l *Lab) AddMachine(ctx context.Context, spec MachineSpec) (*Machine, error) {
	if err := spec.complete(); err != nil {
		return nil, err
	}
	m := &Machine{spec: spec, lab: l, dir: filepath.Join(l.dir, machinesDir, spec.Name)}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, errors.New("lab is closed")
	}
	for _, other := range l.machines {
		if other.spec.Name == spec.Name {
			l.mu.Unlock()
			return nil, fmt.Errorf("machine %s: the lab has one of this name", spec.Name)
		}
	}
	number := len(l.machines)
	l.machines = append(l.machines, m)
	l.mu.Unlock()

	if err := m.makeFiles(ctx); err != nil {
		return nil, fmt.Errorf("machine %s: %w", spec.Name, err)
	}
	if err := m.addPort(ctx, fmt.Sprintf("tap%d", number)); err != nil {
		return nil, fmt.Errorf("machine %s: %w", spec.Name, err)
	}
	return m, l.saveState()
}

func (m *Machine) makeFiles(ctx context.Context) error {
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return err
	}
	if p := platforms[m.spec.Firmware]; p.uefi() {
		vars, err := p.newVars(m.spec.MAC, m.spec.DiskFirst)
		if err != nil {
			return err
		}
		if err := writeVars(filepath.Join(m.dir, varsFile), vars); err != nil {
			return err
		}
	}
	for i, d := range m.spec.Disks {
		if err := makeDisk(ctx, m.Disk(i), d); err != nil {
			return fmt.Errorf("disk %d: %w", i, err)
		}
	}
	return nil
}

// Name is the machine's name in the lab.
func (m *Machine) Name() string { return m.spec.Name }

// Firmware is what starts it.
func (m *Machine) Firmware() Firmware { return m.spec.Firmware }

// MAC is the hardware address of its network card.
func (m *Machine) MAC() net.HardwareAddr { return m.spec.MAC }

// UUID is its SMBIOS system UUID, which PXE clients send as option 97.
func (m *Machine) UUID() string { return machineUUID(m.spec) }

// Dir holds its disks, variables and logs.
func (m *Machine) Dir() string { return m.dir }

// Disk is the path of its i-th disk, a raw file. Read it while the machine is off.
func (m *Machine) Disk(i int) string { return filepath.Join(m.dir, diskFile(i)) }

// SerialLog is the path of the file with all it ever wrote to its serial port.
func (m *Machine) SerialLog() string { return filepath.Join(m.dir, serialLog) }

// PowerOn starts the machine. It is an error if it runs already, or if QEMU does
// not start: the error then holds what QEMU said. ctx bounds the start only.
func (m *Machine) PowerOn(ctx context.Context) error {
	m.power.Lock()
	defer m.power.Unlock()
	if m.Running() {
		return fmt.Errorf("machine %s: is on already", m.spec.Name)
	}
	s, err := m.start(ctx)
	if err != nil {
		return fmt.Errorf("machine %s: %w", m.spec.Name, err)
	}
	m.mu.Lock()
	m.last, m.next = s, ""
	m.mu.Unlock()
	m.lab.log.Debug("machine on", "machine", m.spec.Name, "pid", s.cmd.Process.Pid)
	return m.lab.saveState()
}

func (m *Machine) start(ctx context.Context) (*session, error) {
	next := m.nextBoot()
	spec, err := m.bootSpec(next)
	if err != nil {
		return nil, err
	}
	serial, serialFile, err := socketPair(ctx, m.socket("serial"))
	if err != nil {
		return nil, err
	}
	defer serialFile.Close()
	control, controlFile, err := socketPair(ctx, m.socket("qmp"))
	if err != nil {
		return nil, errors.Join(err, serial.Close())
	}
	defer controlFile.Close()
	log, err := os.Create(filepath.Join(m.dir, qemuLog))
	if err != nil {
		return nil, errors.Join(err, serial.Close(), control.Close())
	}
	defer log.Close()
	cable, err := m.connect()
	if err != nil {
		return nil, errors.Join(err, serial.Close(), control.Close())
	}

	// Not ctx: the machine lives until it is switched off.
	cmd := m.lab.Command(context.Background(), platforms[spec.Firmware].binary, qemuArgs(spec, m.tap)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = m.dir, log, log
	cmd.ExtraFiles = []*os.File{serialFile, controlFile} // serialFD, qmpFD
	if cable != nil {
		defer cable.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, cable) // netFD
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is not for it
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, serial.Close(), control.Close())
	}
	s := &session{cmd: cmd, on: time.Now(), done: make(chan struct{})}
	s.console = newConsole(serial)
	go func() {
		_ = cmd.Wait() // a killed machine is a normal end; qemu.log has the rest
		<-s.console.done
		control.Close()
		close(s.done)
	}()
	// The listening ends are QEMU's alone now, so that its end is an end of file here.
	serialFile.Close()
	controlFile.Close()
	if cable != nil {
		cable.Close()
	}
	if s.qmp, err = openQMP(ctx, control); err == nil && next != "" {
		err = m.restoreOrder(ctx, s.qmp)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		<-s.done
		said, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("qemu did not start: %w: %s", err, said)
	}
	if m.plug != nil {
		go m.flapAtReset(s.qmp)
	}
	return s, nil
}

// socketPair listens at path and connects to it. It returns this process's end
// and the listening socket for QEMU to accept on; others may connect to path
// after this process has left.
func socketPair(ctx context.Context, path string) (net.Conn, *os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, nil, err
	}
	ul := ln.(*net.UnixListener)
	ul.SetUnlinkOnClose(false)
	defer ul.Close()
	f, err := ul.File()
	if err != nil {
		return nil, nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return conn, f, nil
}

func (m *Machine) socket(kind string) string {
	return filepath.Join(m.lab.runDir, m.spec.Name+"."+kind)
}

// PowerOff cuts the power: the guest gets no notice. It is not an error if the
// machine is off.
func (m *Machine) PowerOff() error {
	m.power.Lock()
	defer m.power.Unlock()
	s := m.session()
	if s == nil {
		return nil
	}
	select {
	case <-s.done:
		return nil
	default:
	}
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("machine %s: %w", m.spec.Name, err)
	}
	<-s.done
	m.lab.log.Debug("machine off", "machine", m.spec.Name)
	return m.lab.saveState()
}

// Reset presses the reset button. The machine must be on.
func (m *Machine) Reset(ctx context.Context) error {
	return m.QMP(ctx, "system_reset", nil, nil)
}

// PressPower presses the power button shortly: the guest is asked to shut down.
func (m *Machine) PressPower(ctx context.Context) error {
	return m.QMP(ctx, "system_powerdown", nil, nil)
}

// Screendump writes what the screen shows to path, as PNG.
func (m *Machine) Screendump(ctx context.Context, path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	return m.QMP(ctx, "screendump", map[string]any{"filename": abs, "format": "png"}, nil)
}

// QMP runs one command of QEMU's monitor and decodes what it returns into out,
// unless out is nil. The machine must be on.
func (m *Machine) QMP(ctx context.Context, command string, args map[string]any, out any) error {
	s := m.session()
	if s == nil {
		return fmt.Errorf("machine %s: is off", m.spec.Name)
	}
	if err := s.qmp.run(ctx, command, args, out); err != nil {
		return fmt.Errorf("machine %s: %s: %w", m.spec.Name, command, err)
	}
	return nil
}

// Events returns QEMU's events since the last power-on, oldest first. RESET
// shows a guest that restarted, SHUTDOWN one that switched itself off.
func (m *Machine) Events() []Event {
	s := m.session()
	if s == nil {
		return nil
	}
	return s.qmp.recorded()
}

// WaitEvent returns when the nth event of that name since power-on, counted from
// 1, has happened. It fails when ctx ends or the machine goes off first.
func (m *Machine) WaitEvent(ctx context.Context, name string, n int) (Event, error) {
	s := m.session()
	if s == nil {
		return Event{}, fmt.Errorf("machine %s: is off", m.spec.Name)
	}
	ev, err := s.qmp.wait(ctx, name, n)
	if err != nil {
		return ev, fmt.Errorf("machine %s: waiting for event %s: %w", m.spec.Name, name, err)
	}
	return ev, nil
}

// Console is the serial line since the last power-on; nil before the first.
func (m *Machine) Console() *Console {
	if s := m.session(); s != nil {
		return s.console
	}
	return nil
}

// WaitSerial returns when the serial line has shown text since power-on. It
// fails when ctx ends or the machine goes off first; the error holds the last
// lines that came.
func (m *Machine) WaitSerial(ctx context.Context, text string) error {
	c := m.Console()
	if c == nil {
		return fmt.Errorf("machine %s: is off", m.spec.Name)
	}
	if _, err := c.Wait(ctx, 0, text); err != nil {
		return fmt.Errorf("machine %s: %w", m.spec.Name, err)
	}
	return nil
}

// Done is closed when the machine is off.
func (m *Machine) Done() <-chan struct{} {
	if s := m.session(); s != nil {
		return s.done
	}
	off := make(chan struct{})
	close(off)
	return off
}

// Running says whether the machine is on.
func (m *Machine) Running() bool {
	select {
	case <-m.Done():
		return false
	default:
		return true
	}
}

// PoweredOn is when the last power-on was, zero before the first.
func (m *Machine) PoweredOn() time.Time {
	if s := m.session(); s != nil {
		return s.on
	}
	return time.Time{}
}

func (m *Machine) session() *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func (m *Machine) state() MachineState {
	st := MachineState{
		Name: m.spec.Name, MAC: m.spec.MAC.String(), Dir: m.dir,
		SerialLog: m.SerialLog(), QMP: m.socket("qmp"),
	}
	if m.Running() {
		st.PID = m.session().cmd.Process.Pid
	}
	return st
}
