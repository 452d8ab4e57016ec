package main

import "fmt"

// bootFiles says why a machine of an architecture cannot be given its boot files.
func (a *appliance) bootFiles(arch string) error {
	if arch != "amd64" {
		return fmt.Errorf("there is no boot program for %s yet", arch)
	}
	return a.assets.Missing()
}
