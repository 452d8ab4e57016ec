// Package docs has the pages of the documentation that the daemon shows.
package docs

import _ "embed"

// Troubleshooting is the guide with a heading for every Reason, in Markdown.
//
//go:embed troubleshooting.md
var Troubleshooting string
