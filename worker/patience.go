package worker

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/pid1"
)

// distrustLimit is how long a server of another installation is tried. A restart
// fetches the boot script again, which names the installation of today.
const distrustLimit = 5 * time.Minute

// patience decides when reconnecting is pointless. An appliance that is away is
// waited for without end: a restart of it, or a day of maintenance, costs nothing.
type patience struct {
	started    time.Time
	welcomed   bool
	distrusted time.Time // since when; zero while the server is believed
}

func (p *patience) note(now time.Time, welcomed bool, refused error) {
	p.welcomed = p.welcomed || welcomed
	switch {
	case refused == nil:
		p.distrusted = time.Time{}
	case p.distrusted.IsZero():
		p.distrusted = now
	}
}

// judge says whether the failure err ends the session. An action that runs is not
// ended by a server that cannot be believed.
func (p *patience) judge(now time.Time, err error, running bool) (End, bool) {
	e := End{What: pid1.Restart, Fault: true}
	switch code := status.Code(err); {
	case code == codes.Unauthenticated:
		e.Reason = fmt.Sprintf("the appliance refuses this worker: %s (look at `rackstrap explain` for this machine; a restart gets a new boot token)", status.Convert(err).Message())
	case code == codes.FailedPrecondition:
		e.Reason = fmt.Sprintf("the appliance cannot work with this worker: %s (a restart loads the worker that belongs to it)", status.Convert(err).Message())
	case !p.distrusted.IsZero() && now.Sub(p.distrusted) >= distrustLimit && !running:
		e.Reason = fmt.Sprintf("the server is not the one that the boot script names, for %v: %s (a restart fetches the script again)", distrustLimit, failureText(err))
	case !p.welcomed && now.Sub(p.started) >= hardware.BootDeadline:
		e.Reason = fmt.Sprintf("no connection in %v, and the boot token has ended (is the appliance running, and its port 42113 open? a restart gets a new token): %s", hardware.BootDeadline, failureText(err))
	default:
		return End{}, false
	}
	return e, true
}

// failureText is an error of a connection in words.
func failureText(err error) string {
	if err == nil {
		return "the appliance ended the connection"
	}
	if s, ok := status.FromError(err); ok {
		if s.Message() == "" || s.Message() == "EOF" {
			return "the appliance ended the connection"
		}
		return s.Message()
	}
	return err.Error()
}
