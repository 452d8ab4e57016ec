// Package metadata is what an installed machine learns about itself: the files of
// cloud-init's NoCloud data source and a network configuration, EC2-style paths with
// IMDSv2 session tokens, and the call home that marks the system up. What is told
// follows from records alone, as functions from values to bytes; the handler on top
// serves it.
//
// The formats are cloud-init's, as of 22.4 (Debian 12):
// https://cloudinit.readthedocs.io/en/22.4/topics/datasources/nocloud.html,
// https://cloudinit.readthedocs.io/en/22.4/topics/datasources/ec2.html and
// https://cloudinit.readthedocs.io/en/22.4/topics/network-config-format-v2.html.
package metadata
