package hardware

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Layout is what was on a disk when the worker looked, as far as a few KiB of each
// partition tell. It is told to people, and nothing is decided by it: the disk may have
// been written since.
type Layout struct {
	Table TableKind `json:"table"`
	// Problem says why less is known than there is, in words: a damaged table, a disk
	// that does not answer.
	Problem string `json:"problem,omitempty"`
	// Content and Label are of what fills the disk where it has no partitions.
	Content ContentKind `json:"content,omitempty"`
	Label   string      `json:"label,omitempty"`
	// Partitions are in the order of their places.
	Partitions []PartitionFact `json:"partitions,omitempty"`
	// More partitions are there than are listed.
	More int `json:"more,omitempty"`
}

// PartitionFact is one partition. It may end beyond the disk: an image was made for a
// larger one.
type PartitionFact struct {
	Number int    `json:"number"` // as the kernel counts
	Start  uint64 `json:"start"`  // first byte
	Bytes  uint64 `json:"bytes"`
	// Type is what the table says it is for, in words, or the table's own code.
	Type string `json:"type,omitempty"`
	// Name is that of a GPT.
	Name string `json:"name,omitempty"`
	// Content is what is in it; empty where nothing was recognised. Label is its own.
	Content ContentKind `json:"content,omitempty"`
	Label   string      `json:"label,omitempty"`
}

// TableKind is the kind of a partition table.
type TableKind string

// The partition tables.
const (
	TableGPT  TableKind = "gpt"
	TableDOS  TableKind = "dos" // a master boot record
	TableNone TableKind = "none"
	// TableUnknown: the disk could not be read, or what is there is damaged.
	TableUnknown TableKind = "unknown"
)

// ContentKind is what a superblock shows: a file system, or what others are built on.
type ContentKind string

// The contents.
const (
	ContentExt2  ContentKind = "ext2"
	ContentExt3  ContentKind = "ext3"
	ContentExt4  ContentKind = "ext4"
	ContentXFS   ContentKind = "xfs"
	ContentBtrfs ContentKind = "btrfs"
	ContentVFAT  ContentKind = "vfat"
	ContentNTFS  ContentKind = "ntfs"
	ContentSwap  ContentKind = "swap"
	ContentLVM2  ContentKind = "lvm2"   // a physical volume
	ContentRAID  ContentKind = "mdraid" // a member of an array
	ContentLUKS  ContentKind = "luks"   // encrypted
)

// contents are all of them.
func contents() []ContentKind {
	return []ContentKind{
		ContentExt2, ContentExt3, ContentExt4, ContentXFS, ContentBtrfs, ContentVFAT, ContentNTFS, ContentSwap, ContentLVM2, ContentRAID, ContentLUKS,
	}
}

// TypeExtended is the type of a partition that only holds others.
const TypeExtended = "extended"

// Limits on what is told of disks.
const (
	// MaxPartitions of a disk are told of: the usual size of a GPT.
	MaxPartitions = 128
	// maxFactPartitions are told of one machine.
	maxFactPartitions = 1024
)

// cap is [Facts.Cap] of a layout, with room for so many partitions; it says how many
// there are.
func (l *Layout) cap(room int) int {
	if l == nil {
		return 0
	}
	if !slices.Contains([]TableKind{TableGPT, TableDOS, TableNone}, l.Table) {
		l.Table = TableUnknown
	}
	known := func(c *ContentKind) {
		if !slices.Contains(contents(), *c) {
			*c = ""
		}
	}
	known(&l.Content)
	l.Problem, l.Label = FactText(l.Problem), FactText(l.Label)
	l.More = max(l.More, 0)
	if most := min(room, MaxPartitions); len(l.Partitions) > most {
		l.More += len(l.Partitions) - most
		l.Partitions = l.Partitions[:most]
	}
	for i := range l.Partitions {
		p := &l.Partitions[i]
		known(&p.Content)
		p.Type, p.Name, p.Label = FactText(p.Type), FactText(p.Name), FactText(p.Label)
	}
	return len(l.Partitions)
}

// Clone is a copy that shares nothing; nil of nil.
func (l *Layout) Clone() *Layout {
	if l == nil {
		return nil
	}
	c := *l
	c.Partitions = slices.Clone(l.Partitions)
	return &c
}

// PartitionName is how the kernel names a partition of a disk: sda1, nvme0n1p1.
func PartitionName(disk string, number int) string {
	name := path.Base(disk)
	if n := len(name); n > 0 && name[n-1] >= '0' && name[n-1] <= '9' {
		name += "p"
	}
	return name + strconv.Itoa(number)
}

// maxInWords partitions are named in one sentence.
const maxInWords = 8

// Holds says in one line what was on the disk: `sda1 vfat "EFI", sda2 ext4 "root"`. It is
// empty where that is not known.
func (d DiskFact) Holds() string {
	l := d.Layout
	if l == nil {
		return ""
	}
	var out []string
	for _, p := range l.Partitions[:min(len(l.Partitions), maxInWords)] {
		out = append(out, PartitionName(d.Path, p.Number)+" "+p.Words())
	}
	if more := len(l.Partitions) - len(out) + l.More; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	if len(out) == 0 {
		out = append(out, l.Words())
	}
	return strings.Join(out, ", ")
}

// Words say what kind of table the disk had, or what filled it.
func (l *Layout) Words() string {
	s := map[TableKind]string{TableGPT: "GPT", TableDOS: "MBR", TableNone: "no partition table"}[l.Table]
	if s == "" {
		s = "not known"
	}
	if l.Content != "" {
		s = "no partitions, " + contentWords(l.Content, l.Label)
	}
	if l.Problem != "" {
		s += " (" + l.Problem + ")"
	}
	return s
}

// Words say what is in the partition, or else what the table says it is for.
func (p PartitionFact) Words() string {
	switch {
	case p.Content != "":
		label := p.Label
		if label == "" {
			label = p.Name
		}
		return contentWords(p.Content, label)
	case p.Type != "":
		return p.Type
	}
	return "of unknown content"
}

func contentWords(c ContentKind, label string) string {
	if label == "" {
		return string(c)
	}
	return fmt.Sprintf("%s %q", c, label)
}
