package metadata

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Machines is what the EC2-style paths need of the rest of the appliance.
type Machines interface {
	// Machine finds the machine that has an address reserved. What it returns is
	// shared and not changed; its user-data is not looked at.
	Machine(addr netip.Addr) (*hardware.Hardware, bool)
	// UserData is the user-data of the system that is installed on the machine; it is
	// asked for where the record opts in only. fs.ErrNotExist where there is none.
	UserData(ctx context.Context, uid string) ([]byte, error)
	Subnets() []*hardware.Subnet
}

// Installs is what the paths with a token need.
type Installs interface {
	// Seed is one file for the install that the token belongs to. An error wrapping
	// fs.ErrNotExist where token or file are unknown, or the token has expired.
	Seed(ctx context.Context, token, file string) ([]byte, error)
	// PhoneHome says that the installed system of the token is up; saying it again
	// changes nothing. fs.ErrNotExist as above.
	PhoneHome(ctx context.Context, token string, from netip.Addr) error
}

// Observation is one thing that an installed system read.
type Observation struct {
	Client netip.Addr
	// MAC is one of the machine's where the machine is known by its address, else zero.
	MAC    hardware.MAC
	Reason hardware.Reason // ReasonMetadataRead or ReasonFileNotFound
	Detail string
	Bytes  int64
}

// Config is what a handler needs.
type Config struct {
	Machines Machines
	Installs Installs
	// Observe is told what was read. It must not block.
	Observe func(ctx context.Context, o Observation)
	// Keys are the installation's SSH keys; they are added to each record's.
	Keys []string
	// Installation is the id of this installation, for provider ids.
	Installation string
	// SessionKey authenticates IMDSv2 session tokens; 32 random bytes.
	SessionKey []byte
	Now        func() time.Time
	Log        *slog.Logger
}

const (
	// maxPhone bounds the body of a phone call: cloud-init sends names and public keys.
	maxPhone = 64 << 10
	// takeTime is how long a client may take over an answer.
	takeTime = time.Minute
)

type handler struct {
	Config
	sessions sessions
	next     http.Handler
}

// NewHandler serves what installed systems ask for at their start and hands all
// else to next:
//
//	/latest/…, /2009-04-04/…   EC2-style metadata, for the machine whose address asks
//	/latest/api/token          IMDSv2 session tokens (PUT)
//	/seed/{token}/{file}       the files of an install
//	/seed/{token}/phone-home   the installed system is up (POST, GET)
func NewHandler(c Config, next http.Handler) http.Handler {
	return &handler{Config: c, sessions: sessions{c.SessionKey, c.Now}, next: next}
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := split(r.URL.Path)
	if len(parts) == 0 || (parts[0] != "seed" && !version(parts[0])) {
		h.next.ServeHTTP(w, r)
		return
	}
	err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(takeTime))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return // the connection has gone
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case parts[0] != "seed":
		r.Body = http.MaxBytesReader(w, r.Body, 0)
		h.ec2(w, r, parts)
	case len(parts) == 3 && parts[2] == FilePhoneHome:
		h.phoneHome(w, r, parts[1])
	case len(parts) == 3:
		h.seed(w, r, parts[1], parts[2])
	default:
		h.noSeed(w, r, "seed")
	}
}

// split has the parts of a path. Slashes too many count as one, as on EC2.
func split(p string) []string {
	return strings.FieldsFunc(path.Clean("/"+p), func(c rune) bool { return c == '/' })
}

// version reports whether the first part of a path names a version of the EC2
// interface, ours or not. cloud-init tries those that it likes best first.
func version(s string) bool {
	if s == "latest" {
		return true
	}
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// seed serves one file of an install. The token is a secret and goes into no log
// and no event.
func (h *handler) seed(w http.ResponseWriter, r *http.Request, token, file string) {
	if !allowed(w, r, http.MethodGet, http.MethodHead) {
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 0)
	data, err := h.Installs.Seed(r.Context(), token, file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		h.noSeed(w, r, "seed file "+file)
	case err != nil:
		h.broken(w, r, "seed file "+file, err)
	default:
		h.send(w, r, contentType(file), data)
		h.observe(r, Observation{Reason: hardware.ReasonMetadataRead, Detail: "seed file " + file, Bytes: int64(len(data))})
	}
}

func (h *handler) noSeed(w http.ResponseWriter, r *http.Request, what string) {
	h.observe(r, Observation{Reason: hardware.ReasonFileNotFound, Detail: what})
	http.Error(w, "no such seed, or its token has expired", http.StatusNotFound)
}

// phoneHome takes a call of the installed system. What cloud-init sends along
// (names, public host keys) is read and dropped: the token says it all.
func (h *handler) phoneHome(w http.ResponseWriter, r *http.Request, token string) {
	if !allowed(w, r, http.MethodPost, http.MethodGet) {
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxPhone)
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		status := http.StatusBadRequest
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, fmt.Sprintf("the body is broken, or has more than %d bytes", maxPhone), status)
		return
	}
	err := h.Installs.PhoneHome(r.Context(), token, client(r))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		h.noSeed(w, r, FilePhoneHome)
	case err != nil:
		h.broken(w, r, FilePhoneHome, err)
	default:
		h.send(w, r, contentText, []byte("ok\n"))
	}
}

// broken answers where the store fails; clients try again.
func (h *handler) broken(w http.ResponseWriter, r *http.Request, what string, err error) {
	h.Log.LogAttrs(r.Context(), slog.LevelError, "metadata not served", slog.String("client", client(r).String()), slog.String("what", hardware.PlainText(what, maxDetail)), slog.Any("error", err))
	http.Error(w, "the appliance cannot answer now; its log says why", http.StatusServiceUnavailable)
}

const (
	contentText = "text/plain; charset=utf-8"
	contentYAML = "application/yaml" // RFC 9512
)

// contentType is what a file of an install is. User-data may be anything.
func contentType(file string) string {
	switch file {
	case FileMetaData, FileNetworkConfig, FileTalos:
		return contentYAML
	case FileIgnition:
		return "application/vnd.coreos.ignition+json"
	}
	return "application/octet-stream"
}

func (h *handler) send(w http.ResponseWriter, r *http.Request, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(data) // who went away asks again
	}
}

const maxDetail = 160

func (h *handler) observe(r *http.Request, o Observation) {
	o.Client = client(r)
	o.Detail = hardware.PlainText(o.Detail, maxDetail)
	h.Observe(context.WithoutCancel(r.Context()), o)
}

// allowed answers for a method that is not one of list.
func allowed(w http.ResponseWriter, r *http.Request, list ...string) bool {
	for _, m := range list {
		if r.Method == m {
			return true
		}
	}
	w.Header().Set("Allow", strings.Join(list, ", "))
	http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	return false
}

// client is the asking address; there is no proxy between machines and us whose
// word we would take for it.
func client(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}
