// Package module finds and loads the kernel modules that the hardware asks for,
// as udev and modprobe do on a full system: every device names itself in a
// modalias, modules.alias says which module takes it, modules.dep and
// modules.softdep what must be there first. The files are depmod's text form,
// modprobe.d(5) and depmod(8).
package module
