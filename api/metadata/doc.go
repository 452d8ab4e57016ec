// Package metadata makes what an installed machine learns about itself at its
// first start: the files of cloud-init's NoCloud data source and a network
// configuration. Everything here is a function from records to bytes; who writes
// them to a disk or serves them is somebody else's business.
//
// The formats are cloud-init's, as of 22.4 (Debian 12):
// https://cloudinit.readthedocs.io/en/22.4/topics/datasources/nocloud.html and
// https://cloudinit.readthedocs.io/en/22.4/topics/network-config-format-v2.html.
package metadata
