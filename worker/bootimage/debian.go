package bootimage

import (
	"fmt"
	"strings"
)

// Stanza is one paragraph of a Debian control file (deb822(5)): field names in
// lower case and their values, continuation lines joined by newlines.
type Stanza map[string]string

// ParseControl reads the paragraphs of a control file. It returns an error that
// names the line which is neither a field nor the continuation of one.
func ParseControl(text string) ([]Stanza, error) {
	var list []Stanza
	var last string
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "":
			last = ""
			continue
		case strings.HasPrefix(line, "#"):
			continue
		case line[0] == ' ' || line[0] == '\t':
			if last == "" {
				return nil, fmt.Errorf("line %d: %q continues nothing", i+1, line)
			}
			list[len(list)-1][last] += "\n" + strings.TrimSpace(line)
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("line %d: %q is not a field", i+1, line)
		}
		if last == "" {
			list = append(list, Stanza{})
		}
		last = strings.ToLower(strings.TrimSpace(name))
		list[len(list)-1][last] = strings.TrimSpace(value)
	}
	return list, nil
}

// Licence returns the short name that a machine-readable copyright file
// (https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/) gives
// for `Files: *`, or "" when it gives none.
func Licence(copyright string) string {
	for paragraph := range strings.SplitSeq(copyright, "\n\n") {
		// One paragraph at a time: some files of the archive have paragraphs
		// that are not quite well-formed, after the one that matters.
		list, err := ParseControl(paragraph)
		if err != nil || len(list) == 0 || list[0]["files"] != "*" {
			continue
		}
		name, _, _ := strings.Cut(list[0]["license"], "\n")
		return name
	}
	return ""
}

// KernelPackage returns the package behind a kernel meta package such as
// linux-image-amd64, and the kernel's version, which is the name of its folder
// below /lib/modules. It returns an error when the stanza depends on none or on
// several.
func KernelPackage(meta Stanza) (pkg, kernel string, err error) {
	const prefix = "linux-image-"
	for dep := range strings.SplitSeq(meta["depends"], ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(dep), " ")
		version, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if pkg != "" {
			return "", "", fmt.Errorf("package %s depends on two kernels, %s and %s", meta["package"], pkg, name)
		}
		pkg, kernel = name, version
	}
	if pkg == "" {
		return "", "", fmt.Errorf("package %s depends on no %s package (depends: %q)", meta["package"], prefix, meta["depends"])
	}
	return pkg, kernel, nil
}
