// Package backup writes, reads back and restores an appliance's records. A backup
// is a zstd-compressed tar of manifest.json, the database as it was at one moment,
// and, only where a passphrase was given, the key file that opens what is sealed in
// it, encrypted with age under that passphrase. Images are not in it: they are
// files below the data directory, named after what is in them, and any tool copies
// those.
package backup
