package worker

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ipmi is the kernel's way to the BMC: the device of ipmi_devintf, as
// include/uapi/linux/ipmi.h describes it.
type ipmi struct {
	f    *os.File
	last int // number of the last request
	end  time.Time
}

const (
	// ipmiPatience is how long one answer may take. The driver itself repeats what the
	// BMC does not take.
	ipmiPatience = 2 * time.Second
	// ipmiLimit bounds all that is asked.
	ipmiLimit = 20 * time.Second
)

// openIPMI opens the device; its error wraps fs.ErrNotExist where there is no BMC.
func openIPMI(name string) (*ipmi, error) {
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &ipmi{f: f, end: time.Now().Add(ipmiLimit)}, nil
}

func (d *ipmi) Close() error { return d.f.Close() }

// ipmiAddr is struct ipmi_addr, for a system interface address.
type ipmiAddr struct {
	kind    int32
	channel int16
	_       [34]byte // of other kinds of address
}

type ipmiMsg struct {
	netfn, cmd byte
	n          uint16
	data       *byte
}

type ipmiReq struct {
	addr  *ipmiAddr
	size  uint32
	msgid int // a C long on the 64-bit machines that we boot
	msg   ipmiMsg
}

type ipmiRecv struct {
	kind  int32
	addr  *ipmiAddr
	size  uint32
	msgid int
	msg   ipmiMsg
}

const (
	ipmiSystemInterface = 0x0c
	ipmiBMCChannel      = 0x0f
	ipmiAddrSize        = 8   // struct ipmi_system_interface_addr
	ipmiMaxMessage      = 272 // IPMI_MAX_MSG_LENGTH
	ipmiResponse        = 1   // IPMI_RESPONSE_RECV_TYPE

	ipmiSend    = 2<<30 | unsafe.Sizeof(ipmiReq{})<<16 | 'i'<<8 | 13  // IPMICTL_SEND_COMMAND
	ipmiReceive = 3<<30 | unsafe.Sizeof(ipmiRecv{})<<16 | 'i'<<8 | 11 // IPMICTL_RECEIVE_MSG_TRUNC
)

// Ask is a probe.Ask.
func (d *ipmi) Ask(netfn, cmd byte, data ...byte) ([]byte, error) {
	d.last++
	req := ipmiReq{addr: &ipmiAddr{kind: ipmiSystemInterface, channel: ipmiBMCChannel}, size: ipmiAddrSize, msgid: d.last, msg: ipmiMsg{netfn: netfn, cmd: cmd, n: uint16(len(data))}}
	if len(data) > 0 {
		req.msg.data = &data[0]
	}
	if err := d.ioctl(ipmiSend, unsafe.Pointer(&req)); err != nil {
		return nil, fmt.Errorf("%s: send: %w", d.f.Name(), err)
	}
	runtime.KeepAlive(data)
	end := time.Now().Add(ipmiPatience)
	if end.After(d.end) {
		end = d.end
	}
	for {
		msgid, answer, err := d.receive(end)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", d.f.Name(), err)
		case msgid != d.last:
			// the answer to a request that we gave up
		case len(answer) == 0:
			return nil, fmt.Errorf("%s: an empty answer", d.f.Name())
		case answer[0] != 0:
			return nil, fmt.Errorf("%s: completion code %#02x", d.f.Name(), answer[0])
		default:
			return answer[1:], nil
		}
	}
}

// receive takes the next answer, until end.
func (d *ipmi) receive(end time.Time) (msgid int, answer []byte, err error) {
	for {
		left := time.Until(end)
		if left <= 0 {
			return 0, nil, errors.New("no answer in time")
		}
		ready := []unix.PollFd{{Fd: int32(d.f.Fd()), Events: unix.POLLIN}}
		if n, err := unix.Poll(ready, int(left.Milliseconds())+1); n <= 0 || errors.Is(err, unix.EINTR) {
			if err != nil && !errors.Is(err, unix.EINTR) {
				return 0, nil, fmt.Errorf("poll: %w", err)
			}
			continue
		}
		buf := make([]byte, ipmiMaxMessage)
		recv := ipmiRecv{addr: new(ipmiAddr), size: uint32(unsafe.Sizeof(ipmiAddr{})), msg: ipmiMsg{n: ipmiMaxMessage, data: &buf[0]}}
		err := d.ioctl(ipmiReceive, unsafe.Pointer(&recv))
		switch {
		case errors.Is(err, unix.EAGAIN):
			continue
		case err != nil && !errors.Is(err, unix.EMSGSIZE):
			return 0, nil, fmt.Errorf("receive: %w", err)
		case recv.kind != ipmiResponse:
			continue // an event that nobody asked for
		}
		return recv.msgid, buf[:min(int(recv.msg.n), len(buf))], nil
	}
}

func (d *ipmi) ioctl(request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, d.f.Fd(), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}
