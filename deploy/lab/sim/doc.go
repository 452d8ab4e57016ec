// Package sim has simulated machines: hundreds of them in one process, each speaking
// the real protocols to a real appliance. A machine is switched by the webhook power
// driver, asks for its address by DHCP, fetches its boot script by HTTP, and runs the
// worker's own session with runners that keep what they would write in memory.
//
// Not simulated are the time that things take, kernel and initramfs, which are not
// fetched, and whatever the bytes of an image would do: what a system does once it is
// booted is given by [Options.OS].
package sim
