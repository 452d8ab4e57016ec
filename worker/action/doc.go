// Package action runs the actions of a workflow on the machine that the worker
// booted: one runner for each workflow.Kind. It needs a kernel with /dev
// (devtmpfs), /proc and /sys, and no other program, so that it works as PID 1
// of an otherwise empty initramfs.
package action
