package workflow

import (
	"net/netip"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// situation is one machine at t0.
type situation struct {
	name string
	s    Snapshot
}

// before is a time before t0.
func before(d time.Duration) time.Time { return t0.Add(-d) }

// plain is a free machine with one NIC in one subnet.
func plain() Snapshot {
	return Snapshot{
		Now: t0, WorkerLeft: before(48 * time.Hour),
		Hardware: &hardware.Hardware{
			Meta:   hardware.Meta{Name: "m1", UID: "h1", Created: before(72 * time.Hour)},
			Spec:   hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC{0x52, 0x54, 0, 0, 0, 1}, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.5/24")}}}},
			Status: hardware.Status{State: hardware.StateAvailable, Since: before(24 * time.Hour)},
		},
		Subnets: []*hardware.Subnet{{Meta: hardware.Meta{Name: "lan"}, Spec: hardware.SubnetSpec{Prefix: netip.MustParsePrefix("10.0.0.0/24")}}},
	}
}

// with changes a snapshot.
func with(s Snapshot, change ...func(*Snapshot)) Snapshot {
	for _, c := range change {
		c(&s)
	}
	return s
}

// install gives it an active install that was created so long ago.
func install(age time.Duration) func(*Snapshot) {
	return func(s *Snapshot) {
		w := newRun()
		w.Meta.Created = before(age)
		w.Spec.Template, w.Spec.Purpose, w.Spec.Params = "install", PurposeInstall, map[string]any{"image": "debian-12"}
		w.Status.Message = "waits for the machine to netboot"
		s.Workflow = w
		st := &s.Hardware.Status
		st.State, st.Since, st.Workflow, st.Deadline = hardware.StateProvisioning, before(age), w.Meta.Name, before(age).Add(2*time.Hour)
	}
}

// boots gives it a boot that began and came to a phase so long ago.
func boots(began, moved time.Duration, p hardware.Phase) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Boot = &hardware.Boot{
			ID: "01B", Hardware: "h1", Started: before(began), Moved: before(moved), Phase: p, Deadline: before(moved).Add(hardware.BootDeadline),
			MAC: s.Hardware.Spec.Interfaces[0].MAC, Firmware: hardware.FirmwareUEFI, Next: s.next(),
		}
		if p >= hardware.PhaseAddress {
			s.Boot.Client = netip.MustParseAddr("10.0.0.5")
		}
	}
}

// saw adds an event of the boot, or of none.
func saw(boot string, r hardware.Reason, detail string, age time.Duration) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Events = append(s.Events, Event{Boot: boot, Reason: r, Detail: detail, Count: 1, First: before(age), Last: before(age)})
	}
}

// runs makes the workflow run its second action, and its worker is there.
func runs(age time.Duration) func(*Snapshot) {
	return func(s *Snapshot) {
		st := &s.Workflow.Status
		st.State, st.Started, st.Current, st.Message = StateRunning, before(age), 1, ""
		st.Actions[0].State = StateSucceeded
		st.Actions[0].Attempts = []Attempt{{Boot: "01B", State: StateSucceeded, Started: before(age), Finished: before(age - time.Second)}}
		st.Actions[1].State = StateRunning
		st.Actions[1].Attempts = []Attempt{{Boot: "01B", State: StateRunning, Started: before(age - time.Second)}}
		s.WorkerConnected = true
	}
}

// fails ends the running attempt so long ago; the action is tried again.
func fails(age time.Duration, message string) func(*Snapshot) {
	return func(s *Snapshot) {
		t := s.Workflow.Status.Actions[1].last()
		t.State, t.Finished, t.Message = StateFailed, before(age), message
	}
}

// ends ends the workflow so long ago.
func ends(age time.Duration, st State, message string, machine hardware.State) func(*Snapshot) {
	return func(s *Snapshot) {
		w := s.Workflow
		w.Status.State, w.Status.Finished, w.Status.Message = st, before(age), message
		h := &s.Hardware.Status
		h.State, h.Since, h.Deadline = machine, before(age), time.Time{}
		if s.Boot != nil {
			s.Boot.Closed = true
		}
		s.WorkerConnected = false
	}
}

// gone ends the worker's connection so long ago.
func gone(age time.Duration) func(*Snapshot) {
	return func(s *Snapshot) { s.WorkerConnected, s.WorkerLeft = false, before(age) }
}

func status(f func(*hardware.Status)) func(*Snapshot) {
	return func(s *Snapshot) { f(&s.Hardware.Status) }
}

// discovered makes it a machine that nobody registered.
func discovered(s *Snapshot) {
	st := &s.Hardware.Status
	st.State, st.Since, st.Discovered = hardware.StatePending, before(5*time.Minute), before(5*time.Minute)
	s.Hardware.Facts = &hardware.Facts{Vendor: "ACME", Product: "Rocket", Serial: "CZJ0001"}
	s.Boot = &hardware.Boot{ID: "01B", Started: before(6 * time.Minute), Discovery: true, Phase: hardware.PhaseWorker, Moved: before(5 * time.Minute)}
	pooled(s)
}

// pooled takes its reservation away, and gives its subnet a pool.
func pooled(s *Snapshot) {
	s.Hardware.Spec.Interfaces[0].Addresses = nil
	s.Subnets[0].Spec.Mode, s.Subnets[0].Spec.Pool = hardware.ModePool, &hardware.Pool{}
}

func spec(f func(*hardware.Spec)) func(*Snapshot) {
	return func(s *Snapshot) { f(&s.Hardware.Spec) }
}

// chain makes its boot take a chain.
func chain(c hardware.Chain) func(*Snapshot) { return func(s *Snapshot) { s.Boot.Chain = c } }

// loops gives it five boots of which nothing came.
func loops(to hardware.Target, p hardware.Phase) func(*Snapshot) {
	return status(func(s *hardware.Status) {
		s.Netboots = hardware.Netboots{Count: hardware.NetbootLimit, Since: before(40 * time.Minute), Last: before(9 * time.Minute), Phase: p, Target: to}
	})
}

// webhook gives it a controller, which was told to cycle the power so long ago.
func webhook(age time.Duration) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Hardware.Spec.Power = &hardware.PowerControl{Driver: hardware.PowerWebhook, URL: "https://bmc/m1"}
		s.Hardware.Status.Power = hardware.Power{State: hardware.PowerOn, Checked: before(age), Asked: "cycle", AskedAt: before(age)}
	}
}

func no() *bool { return new(bool) }

// situations is every state and what can be the matter in it.
func situations() []situation {
	m := time.Minute
	running := func(change ...func(*Snapshot)) Snapshot {
		return with(plain(), append([]func(*Snapshot){install(10 * m), boots(5*m, 4*m, hardware.PhaseWorker), runs(4 * m)}, change...)...)
	}
	return []situation{
		{"free", plain()},
		{"new record, nothing known", Snapshot{Now: t0, Hardware: &hardware.Hardware{Meta: hardware.Meta{Name: "m1", Created: before(m)}}}},
		{"claimed", with(plain(), status(func(s *hardware.Status) {
			s.Claim = &hardware.ClaimRef{ID: "c-7", Owner: "team-a", Since: before(m)}
		}))},
		{"maintenance", with(plain(), status(func(s *hardware.Status) { s.Maintenance, s.MaintenanceNote = true, "new disk" }))},
		{"pending", with(plain(), status(func(s *hardware.Status) { s.State = hardware.StatePending }))},
		{"discovered", with(plain(), discovered)},
		{"discovered, its worker waits", with(plain(), discovered, func(s *Snapshot) { s.WorkerConnected = true })},
		{"discovered, in doubt", with(plain(), discovered, status(func(s *hardware.Status) {
			s.Conflicts = []hardware.IdentityConflict{{Kind: hardware.ConflictUUID, With: "m7", Detail: "its UUID 11111111-2222-3333-4444-555555555555 is also that of m7", Since: before(4 * m)}}
		}))},
		{"a pool lends its address", with(plain(), install(m), pooled)},
		{"another server gives its address", with(plain(), install(m), pooled, func(s *Snapshot) { s.Subnets[0].Spec.Mode, s.Subnets[0].Spec.Pool = hardware.ModeProxy, nil })},
		{"retired", with(plain(), status(func(s *hardware.Status) { s.State = hardware.StateRetired }))},
		{"on hold", with(plain(), status(func(s *hardware.Status) {
			s.Hold, s.HoldReason, s.HoldSince = true, hardware.ReasonOnHold, before(20*m)
		}))},
		{"on hold with a workflow", with(plain(), install(10*m), status(func(s *hardware.Status) {
			s.Hold, s.HoldReason, s.HoldSince = true, hardware.ReasonOnHold, before(20*m)
		}))},
		{"token stolen", running(status(func(s *hardware.Status) {
			s.Hold, s.HoldReason, s.HoldSince = true, hardware.ReasonTokenStolen, before(m)
		}), gone(m), saw("01B", hardware.ReasonTokenStolen, "from 10.0.0.9", m))},
		{"nobody knows whether it stopped", with(plain(), status(func(s *hardware.Status) {
			s.State, s.Hold, s.HoldReason, s.HoldSince = hardware.StateReleasing, true, hardware.ReasonNotStopped, before(3*m)
			s.Stopping = &hardware.Stopping{Claim: "c-7", Since: before(18 * m), Until: before(3 * m), Stopped: &hardware.Stopped{At: before(3 * m), By: hardware.StoppedByHold}}
		}))},
		{"stopped in a boot loop", with(plain(), install(50*m), boots(9*m, 8*m, hardware.PhaseProgram), loops(hardware.TargetWorker, hardware.PhaseProgram), status(func(s *hardware.Status) {
			s.Hold, s.HoldReason, s.HoldSince = true, hardware.ReasonBootLoop, before(3*m)
		}))},
		{"its disk does not start", running(ends(60*m, StateSucceeded, "", hardware.StateProvisioned), loops(hardware.TargetDisk, hardware.PhaseAddress), status(func(s *hardware.Status) { s.Installed = true }))},
		{"another has its UUID", with(plain(), status(func(s *hardware.Status) {
			s.Conflicts = []hardware.IdentityConflict{{Kind: hardware.ConflictUUID, With: "m2", Detail: "its UUID 4c4c4544-0042-3510-8052-b4c04f564231 is also that of m2", Since: before(30 * m)}}
		}))},
		{"another has its UUID, as it should", with(plain(), status(func(s *hardware.Status) {
			s.Conflicts = []hardware.IdentityConflict{{Kind: hardware.ConflictUUID, With: "m2", Detail: "x", Since: before(30 * m), Accepted: before(m)}}
		}))},
		{"allowPXE false", with(plain(), install(10*m), spec(func(s *hardware.Spec) { s.Netboot.AllowPXE = no() }))},
		{"allowWorkflow false", with(plain(), install(10*m), spec(func(s *hardware.Spec) { s.Netboot.AllowWorkflow = no() }))},
		{"to be switched on by hand, just now", with(plain(), install(m))},
		{"to be switched on by hand, for an hour", with(plain(), install(60*m))},
		{"switched on, not seen yet", with(plain(), install(2*m), webhook(m))},
		{"switched on, never seen", with(plain(), install(10*m), webhook(9*m))},
		{"power failed", with(plain(), install(10*m), webhook(9*m), status(func(s *hardware.Status) { s.Power.Error = "https://bmc/m1: 401 Unauthorized" }))},
		{"never seen, older boot", with(plain(), boots(30*24*60*m, 30*24*60*m, hardware.PhaseScript), install(60*m))},
		{"dhcp: false", with(plain(), install(10*m), spec(func(s *hardware.Spec) { s.Interfaces[0].DHCP = no() }))},
		{"no address reserved", with(plain(), install(10*m), spec(func(s *hardware.Spec) { s.Interfaces[0].Addresses = nil }))},
		{"address in no subnet", with(plain(), install(10*m), spec(func(s *hardware.Spec) {
			s.Interfaces[0].Addresses = []netip.Prefix{netip.MustParsePrefix("10.9.0.5/24")}
		}))},
		{"no subnet at all", with(plain(), install(10*m), func(s *Snapshot) { s.Subnets = nil })},
		{"subnet off", with(plain(), install(10*m), func(s *Snapshot) { s.Subnets[0].Spec.Mode = hardware.ModeOff })},
		{"in another subnet than its record says", with(plain(), install(10*m), saw("", hardware.ReasonNoReservation, "dmz", m))},
		{"the pool is empty", with(plain(), install(10*m), pooled, saw("", hardware.ReasonPoolEmpty, "lan", m))},
		{"addresses of the pool are in use", with(plain(), install(10*m), pooled, saw("", hardware.ReasonAddressInUse, "10.0.0.101 is used by 52:54:00:00:00:66; it is left alone for 1h0m0s", m))},
		{"behind a relay outside any subnet", with(plain(), install(10*m), saw("", hardware.ReasonNoSubnet, "relay 10.7.0.1", m))},
		{"boots", with(plain(), install(10*m), boots(m, 20*time.Second, hardware.PhaseScript), saw("01B", hardware.ReasonScriptSent, "", 20*time.Second))},
		{"stuck before its address", with(plain(), install(20*m), boots(10*m, 10*m, hardware.PhaseDHCP), saw("01B", hardware.ReasonOffered, "10.0.0.5", 9*m))},
		{"took another server's offer", with(plain(), install(20*m), boots(m, m, hardware.PhaseDHCP), saw("01B", hardware.ReasonOffered, "10.0.0.5", m), saw("01B", hardware.ReasonOtherServer, "10.0.0.254", m))},
		{"stuck before the boot program", with(plain(), install(20*m), boots(10*m, 10*m, hardware.PhaseAddress), saw("01B", hardware.ReasonBootProgram, "snponly.efi", 10*m))},
		{"unknown firmware", with(plain(), install(20*m), boots(m, m, hardware.PhaseAddress), saw("01B", hardware.ReasonAcked, "10.0.0.5", m), saw("01B", hardware.ReasonUnknownFirmware, "", m))},
		{"program loop", with(plain(), install(20*m), boots(3*m, 3*m, hardware.PhaseProgram), saw("01B", hardware.ReasonProgramSent, "undionly.kpxe by TFTP", 3*m), saw("01B", hardware.ReasonProgramLoop, "", 2*m))},
		{"no boot assets", with(plain(), install(20*m), boots(3*m, 3*m, hardware.PhaseAddress), saw("01B", hardware.ReasonNoBootAssets, "", 2*m))},
		{"the program does not run", with(plain(), install(20*m), boots(10*m, 9*m, hardware.PhaseProgram), saw("01B", hardware.ReasonProgramSent, "snponly.efi by TFTP", 9*m))},
		{"iPXE does not run under UEFI", with(plain(), install(20*m), boots(10*m, 9*m, hardware.PhaseProgram), chain(hardware.ChainIPXE), saw("01B", hardware.ReasonProgramSent, "snponly.efi by TFTP", 9*m))},
		{"iPXE does not run under UEFI, secureBoot off", with(plain(), install(20*m), spec(func(s *hardware.Spec) { s.Netboot.SecureBoot = hardware.SecureBootOff }), boots(10*m, 9*m, hardware.PhaseProgram), chain(hardware.ChainIPXE))},
		{"shim does not run", with(plain(), install(20*m), boots(10*m, 9*m, hardware.PhaseProgram), chain(hardware.ChainGRUB), saw("01B", hardware.ReasonProgramSent, "shimx64.efi by TFTP", 9*m))},
		{"shim does not run, secureBoot on", with(plain(), install(20*m), spec(func(s *hardware.Spec) { s.Netboot.SecureBoot = hardware.SecureBootOn }), boots(10*m, 9*m, hardware.PhaseProgram), chain(hardware.ChainGRUB))},
		{"shim does not run on arm64", with(plain(), install(20*m), boots(10*m, 9*m, hardware.PhaseProgram), chain(hardware.ChainGRUB), func(s *Snapshot) { s.Boot.Firmware = hardware.FirmwareUEFIARM })},
		{"its own script, and a workflow waits", with(plain(), install(10*m), spec(func(s *hardware.Spec) { s.Netboot.IPXE = &hardware.OwnScript{URL: "http://10.0.0.9/x.ipxe"} }))},
		{"its own script", with(plain(), spec(func(s *hardware.Spec) { s.Netboot.IPXE = &hardware.OwnScript{URL: "http://10.0.0.9/x.ipxe"} }))},
		{"its own script in a boot through GRUB", with(plain(), spec(func(s *hardware.Spec) { s.Netboot.IPXE = &hardware.OwnScript{URL: "http://10.0.0.9/x.ipxe"} }), boots(m, m, hardware.PhaseAddress), chain(hardware.ChainGRUB), saw("01B", hardware.ReasonOwnNeedsIPXE, "arm64 UEFI", m))},
		{"the pool is empty", with(plain(), install(10*m), pooled, saw("", hardware.ReasonPoolEmpty, "lan", m))},
		{"the other server is silent", with(plain(), install(20*m), pooled, func(s *Snapshot) { s.Subnets[0].Spec.Mode, s.Subnets[0].Spec.Pool = hardware.ModeProxy, nil }, boots(10*m, 10*m, hardware.PhaseDHCP), saw("01B", hardware.ReasonProxyOffered, "snponly.efi", 10*m))},
		{"two boots in vain", with(plain(), install(20*m), boots(m, m, hardware.PhaseScript), loops(hardware.TargetWorker, hardware.PhaseScript), status(func(s *hardware.Status) { s.Netboots.Count = 2 }))},
		{"script without token", with(plain(), install(20*m), boots(3*m, 3*m, hardware.PhaseProgram), saw("01B", hardware.ReasonProgramSent, "", 3*m), saw("01B", hardware.ReasonScriptNoToken, "10.0.0.77", 2*m))},
		{"script without token, then with", with(plain(), install(20*m), boots(2*m, m, hardware.PhaseScript), saw("01B", hardware.ReasonScriptNoToken, "10.0.0.77", 2*m), saw("01B", hardware.ReasonScriptSent, "", m))},
		{"the kernel is not fetched", with(plain(), install(20*m), boots(10*m, 8*m, hardware.PhaseScript), saw("01B", hardware.ReasonScriptSent, "", 8*m))},
		{"the worker does not come", with(plain(), install(20*m), webhook(11*m), boots(10*m, 8*m, hardware.PhaseKernel), saw("01B", hardware.ReasonInitramfsSent, "", 8*m))},
		{"the worker is too old", with(plain(), install(20*m), boots(2*m, m, hardware.PhaseKernel), saw("01B", hardware.ReasonInitramfsSent, "", m), saw("01B", hardware.ReasonWorkerTooOld, "from 10.0.0.5", m))},
		{"cycled while it hung", with(plain(), install(20*m), boots(15*m, 12*m, hardware.PhaseScript), webhook(2*m))},
		{"the worker is there, nothing has begun", with(plain(), install(m), boots(m, m, hardware.PhaseWorker), func(s *Snapshot) { s.WorkerConnected = true })},
		{"works", running(func(s *Snapshot) { s.Progress = &Progress{Action: 1, Done: 350e6, Total: 1000e6} })},
		{"works, and what is known is of the action before", running(func(s *Snapshot) { s.Progress = &Progress{Done: 6e6, Total: 6e6} })},
		{"works, paused", running(fails(0, "x"), func(s *Snapshot) {
			s.Workflow.Status.Actions[1].Attempts = nil
			s.Workflow.Status.Message = "waits: the record says allowWorkflow: false"
		})},
		{"an action is tried again", running(fails(3*time.Second, "GET http://10.0.0.1:7080/images/…: connection refused"))},
		{"an action is tried again now", running(fails(m, "no disk"), func(s *Snapshot) {
			a := &s.Workflow.Status.Actions[1]
			a.Attempts = append(a.Attempts, Attempt{Boot: "01B", State: StateRunning, Started: before(10 * time.Second)})
		})},
		{"it restarts again and again", running(fails(m, "the machine restarted"), func(s *Snapshot) {
			a := &s.Workflow.Status.Actions[1]
			a.Attempts[0].Interrupted = true
			a.Attempts = append(a.Attempts, a.Attempts[0])
		})},
		{"is being cancelled", running(func(s *Snapshot) {
			s.Workflow.Status.Cancelling, s.Workflow.Status.Message = true, "wrong image"
		})},
		{"the worker left a moment ago", running(gone(30 * time.Second))},
		{"the worker is lost", running(gone(3 * m))},
		{"the worker is gone", with(plain(), install(60*m), boots(50*m, 49*m, hardware.PhaseWorker), runs(49*m), webhook(50*m), gone(20*m))},
		{"restarted during the action", running(gone(2*m), boots(m, 10*time.Second, hardware.PhaseScript))},
		{"overdue", with(plain(), install(3*60*m))},
		{"nothing runs for it", with(plain(), install(10*m), func(s *Snapshot) { s.Workflow = nil })},
		{"restarts into its system", running(ends(m, StateSucceeded, "", hardware.StateProvisioning), status(func(s *hardware.Status) {
			s.AwaitOS, s.Installed, s.Deadline = true, true, t0.Add(29*m)
		}))},
		{"its system does not come up", running(ends(12*m, StateSucceeded, "", hardware.StateProvisioning), status(func(s *hardware.Status) {
			s.AwaitOS, s.Installed, s.Deadline = true, true, t0.Add(18*m)
		}))},
		{"its system did not come up in time", running(ends(31*m, StateSucceeded, "", hardware.StateProvisioning), status(func(s *hardware.Status) {
			s.AwaitOS, s.Installed, s.Deadline = true, true, before(m)
		}))},
		{"provisioned, up", running(ends(30*m, StateSucceeded, "", hardware.StateProvisioned), status(func(s *hardware.Status) {
			s.Installed, s.OSUp = true, before(28*m)
		}))},
		{"provisioned, starts", running(ends(m, StateSucceeded, "", hardware.StateProvisioned), status(func(s *hardware.Status) { s.Installed = true }))},
		{"provisioned, not heard of", running(ends(60*m, StateSucceeded, "", hardware.StateProvisioned), status(func(s *hardware.Status) { s.Installed = true }))},
		{"adopted", with(plain(), spec(func(s *hardware.Spec) { s.Protect = true }), status(func(s *hardware.Status) {
			s.State, s.Claim = hardware.StateProvisioned, &hardware.ClaimRef{ID: "adopted", Owner: "adopted", Since: before(24 * 60 * m)}
		}))},
		{"install failed", running(ends(5*m, StateFailed, `action "image-write": checksum differs`, hardware.StateFailed), status(func(s *hardware.Status) { s.Failures = 1 }))},
		{"install failed before it began", running(ends(5*m, StateFailed, `action "disk-wipe": there is no image "debian-13"`, hardware.StateAvailable))},
		{"in quarantine", running(ends(5*m, StateFailed, `action "image-write": no space`, hardware.StateFailed), status(func(s *hardware.Status) { s.Failures = 3 }))},
		{"wipe failed", running(func(s *Snapshot) { s.Workflow.Spec.Purpose = PurposeRelease }, ends(5*m, StateFailed, `action "disk-wipe": read back 4096 bytes that are not zero`, hardware.StateFailed))},
		{"given up without a wipe", running(ends(60*m, StateSucceeded, "", hardware.StateFailed), status(func(s *hardware.Status) {
			s.Hold, s.HoldReason = true, hardware.ReasonReleasedUnwiped
		}))},
		{"its system did not come up", running(func(s *Snapshot) { s.Workflow.Spec.WaitForPhoneHome = true }, ends(5*m, StateSucceeded, "", hardware.StateFailed))},
		{"its wipe proved nothing", running(func(s *Snapshot) { s.Workflow.Spec.Purpose = PurposeRelease }, ends(5*m, StateSucceeded, "", hardware.StateFailed))},
		{"failed and taken off hold", running(ends(60*m, StateSucceeded, "", hardware.StateFailed))},
		{"releasing, not begun", running(ends(m, StateCancelled, "the machine was released", hardware.StateReleasing))},
		{"releasing", with(plain(), install(5*m), status(func(s *hardware.Status) { s.State = hardware.StateReleasing }), func(s *Snapshot) { s.Workflow.Spec.Purpose = PurposeRelease })},
		{"late, in maintenance", with(plain(), install(3*60*m), status(func(s *hardware.Status) { s.Maintenance = true }))},
	}
}
