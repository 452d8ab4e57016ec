package l2

import "time"

// Times of IEEE 802.1AX-2014, 6.4.4.
const (
	fastPeriodic  = time.Second
	slowPeriodic  = 30 * time.Second
	shortTimeout  = 3 * time.Second
	longTimeout   = 90 * time.Second
	aggregateWait = 2 * time.Second
	maxSent       = 3 // LACPDUs in one fastPeriodic (6.4.16)
)

// rxState is that of the Receive machine (6.4.12).
type rxState int

const (
	rxDisabled rxState = iota
	rxExpired
	rxDefaulted
	rxCurrent
)

// muxState is that of the Mux machine with coupled control (6.4.15, figure 6-23).
type muxState int

const (
	muxDetached muxState = iota
	muxWaiting
	muxAttached
	muxCollectingDistributing
)

// lacpPort is the actor's side of one port: the machines of 6.4 as a function of
// LACPDUs and of time.
type lacpPort struct {
	conf    LACP
	actor   lacpInfo
	partner lacpInfo

	rx       rxState
	rxUntil  time.Time // current_while_timer
	mux      muxState
	muxWait  time.Time // wait_while_timer
	ntt      bool      // need to transmit
	periodic time.Time // when the next periodic LACPDU is due
	sent     []time.Time
	heard    bool // a partner, since the link came up
}

func newLACP(conf LACP, system mac, port uint16) *lacpPort {
	p := &lacpPort{conf: conf, actor: lacpInfo{
		systemPriority: 0x8000, system: system, key: conf.Group, portPriority: 0x8000, port: port, state: lacpAggregation,
	}}
	if !conf.Passive {
		p.actor.state |= lacpActivity
	}
	if conf.Fast {
		p.actor.state |= lacpTimeout
	}
	return p
}

// forwards reports whether the port collects and distributes.
func (p *lacpPort) forwards() bool { return p.mux == muxCollectingDistributing }

// aggregation is what ports of one link have in common: our key and their system and key.
func (p *lacpPort) aggregation() [2]lacpInfo {
	return [2]lacpInfo{{key: p.actor.key}, {systemPriority: p.partner.systemPriority, system: p.partner.system, key: p.partner.key}}
}

// link is port_enabled: from PORT_DISABLED to EXPIRED and back (6.4.12).
func (p *lacpPort) link(now time.Time, up bool) {
	*p = *newLACP(p.conf, p.actor.system, p.actor.port)
	if up {
		p.expire(now)
		p.periodic = now
	}
}

// expire is the entry of EXPIRED: the partner has three seconds to be heard of.
func (p *lacpPort) expire(now time.Time) {
	p.rx, p.rxUntil = rxExpired, now.Add(shortTimeout)
	p.partner.state &^= lacpSynchronization
	p.partner.state |= lacpTimeout
	p.actor.state |= lacpExpired
}

// receive is the entry of CURRENT.
func (p *lacpPort) receive(now time.Time, frame []byte) {
	theirs, ours, err := parseLACP(frame)
	if err != nil || p.rx == rxDisabled {
		return
	}
	p.heard = true
	// update_NTT: they do not know us as we are.
	const known = lacpActivity | lacpTimeout | lacpSynchronization | lacpAggregation
	if !ours.same(p.actor) || (ours.state^p.actor.state)&known != 0 {
		p.ntt = true
	}
	if !theirs.same(p.partner) { // update_Selected: another partner
		p.detach()
	}
	// recordPDU
	p.partner = theirs
	synchronous := theirs.has(lacpSynchronization) && (ours.same(p.actor) || !theirs.has(lacpAggregation)) &&
		(theirs.has(lacpActivity) || p.actor.has(lacpActivity) && ours.has(lacpActivity))
	if !synchronous {
		p.partner.state &^= lacpSynchronization
	}
	p.actor.state &^= lacpDefaulted | lacpExpired
	p.rx, p.rxUntil = rxCurrent, now.Add(longTimeout)
	if p.conf.Fast {
		p.rxUntil = now.Add(shortTimeout)
	}
	if next := now.Add(p.period()); p.periodic.After(next) { // from slow to fast (6.4.13)
		p.periodic = next
	}
	p.multiplex(now)
}

// period is the Periodic Transmission machine's: the partner says how often it wants
// to hear of us.
func (p *lacpPort) period() time.Duration {
	if p.partner.has(lacpTimeout) {
		return fastPeriodic
	}
	return slowPeriodic
}

func (p *lacpPort) detach() {
	if p.mux != muxDetached {
		p.ntt = true
	}
	p.mux = muxDetached
	p.actor.state &^= lacpSynchronization | lacpCollecting | lacpDistributing
}

// multiplex is the Mux machine. A port is selected while its partner is current.
func (p *lacpPort) multiplex(now time.Time) {
	if p.rx != rxCurrent && p.rx != rxExpired {
		p.detach()
		return
	}
	if p.mux == muxDetached && p.rx == rxCurrent {
		p.mux, p.muxWait = muxWaiting, now.Add(aggregateWait)
	}
	if p.mux == muxWaiting && !now.Before(p.muxWait) {
		p.mux = muxAttached
		p.actor.state |= lacpSynchronization
		p.ntt = true
	}
	switch synchronous := p.partner.has(lacpSynchronization); {
	case p.mux == muxAttached && synchronous:
		p.mux = muxCollectingDistributing
		p.actor.state |= lacpCollecting | lacpDistributing
		p.ntt = true
	case p.mux == muxCollectingDistributing && !synchronous:
		p.mux = muxAttached
		p.actor.state &^= lacpCollecting | lacpDistributing
		p.ntt = true
	}
}

// tick lets the timers run and returns the LACPDU that is due, or nil.
func (p *lacpPort) tick(now time.Time) []byte {
	if p.rx == rxDisabled {
		return nil
	}
	switch expired := !now.Before(p.rxUntil); {
	case p.rx == rxCurrent && expired:
		p.expire(now)
	case p.rx == rxExpired && expired: // DEFAULTED
		p.rx, p.partner = rxDefaulted, lacpInfo{}
		p.actor.state &^= lacpExpired
		p.actor.state |= lacpDefaulted
	}
	p.multiplex(now)
	silent := !p.actor.has(lacpActivity) && !p.partner.has(lacpActivity) // NO_PERIODIC
	if !silent && !now.Before(p.periodic) {
		p.ntt = true
		p.periodic = now.Add(p.period())
	}
	for len(p.sent) > 0 && now.Sub(p.sent[0]) >= fastPeriodic {
		p.sent = p.sent[1:]
	}
	if !p.ntt || silent || len(p.sent) >= maxSent {
		return nil
	}
	p.ntt = false
	p.sent = append(p.sent, now)
	return lacpFrame(p.actor, p.partner)
}
