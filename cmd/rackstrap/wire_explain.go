package main

// bootFiles says why a machine of an architecture cannot be given its boot files.
func (a *appliance) bootFiles(arch string) error { return a.assets.Missing(arch) }
