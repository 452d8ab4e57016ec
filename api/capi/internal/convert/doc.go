// Package convert turns Cluster API manifests of the Tinkerbell provider (CAPT) and the
// Metal3 provider (CAPM3), and of older versions of the Cluster API itself, into
// manifests of Rackstrap and of version v1beta2.
//
// It is a function from files to one file and notes. What has no equivalent is never
// dropped in silence: a note names the file, the object and the field, and says what to
// write instead. It talks to nobody and adopts no running machine.
package convert
