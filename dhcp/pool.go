package dhcp

import (
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// lend finds the address of the Pool that a client has or may have, into p.Addr; with
// a Reason there is none.
func (s *Server) lend(_ *Class, p *Place, _ time.Time) (hardware.Reason, string) {
	return hardware.ReasonPoolEmpty, p.Subnet.Meta.Name
}
