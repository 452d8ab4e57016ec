package workergrpc

// Protocol is the version this server speaks. It takes the one before, too.
const Protocol = 1

// version is one version of the worker protocol. A new number is for what an old
// worker or appliance would misunderstand; a field or an action that it may ignore
// needs none.
type version struct {
	number uint32
	// added says what came with it, later additions that may be ignored included.
	added string
}

// versions is the history of the protocol, oldest first.
func versions() []version {
	return []version{
		{1, "Hello to Finish. Since then, to be ignored by those that do not know it: Report.wiped; the actions ignition and seed.partition (an older worker fails them in words); mode verified of disk.wipe (an older worker wipes quickly and reports no proof, which releases nothing)."},
	}
}

// accepted reports whether a server that speaks the version server takes a worker
// that speaks the version worker: its own and the one before, so that a machine
// which booted before an upgrade of the appliance can finish what it does.
func accepted(worker, server uint32) bool {
	return worker >= 1 && worker <= server && server-worker <= 1
}
