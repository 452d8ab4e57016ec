package codec

import (
	"errors"
	"fmt"
)

// Errors of this package wrap exactly one of these. An error of the source
// itself (a broken connection) is wrapped as it is and matches none of them.
var (
	// ErrFormat: the content is not a disk image that can be written.
	ErrFormat = errors.New("not a usable disk image")
	// ErrTruncated: the source ended before its image did.
	ErrTruncated = errors.New("image is truncated")
	// ErrTrailing: the source goes on after the end of the image.
	ErrTrailing = errors.New("data after the end of the image")
	// ErrCorrupt: the compressed stream contradicts itself.
	ErrCorrupt = errors.New("image is corrupt")
	// ErrChecksum: the source is not the one the checksum was made for.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrLength: the source is longer than was announced.
	ErrLength = errors.New("image is longer than announced")
	// ErrLimit: decoding would need more memory than this package allows.
	ErrLimit = errors.New("image needs too much memory to decode")
)

func formatError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

func truncated(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrTruncated, fmt.Sprintf(format, args...))
}

// trailing is the error for what follows a complete stream of format f.
func trailing(f Format) error {
	return fmt.Errorf("%w: a complete %s stream is followed by something else (make the image again)", ErrTrailing, f)
}

// isOurs reports whether err already carries one of this package's sentinels.
func isOurs(err error) bool {
	for _, s := range []error{
		ErrFormat, ErrTruncated, ErrTrailing, ErrCorrupt, ErrChecksum, ErrLength, ErrLimit,
	} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}
