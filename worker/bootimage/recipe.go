package bootimage

import (
	"embed"
	"io/fs"
)

//go:embed *.go
var source embed.FS

// Recipe returns the source of this package, which decides what an initramfs
// looks like. A cache of results has it in its keys.
func Recipe() fs.FS { return source }
