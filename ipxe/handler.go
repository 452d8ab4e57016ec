package ipxe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/rackstrap/rackstrap/hardware"
)

// handler serves everything that machines fetch over plain HTTP.
type handler struct {
	assets  *Assets
	backend Backend
	log     *slog.Logger
	stall   time.Duration
	rate    int64
	gate    gate
}

// NewHandler is the HTTP side of netbooting:
//
//	/ipxe/script/{mac}/auto.ipxe  the boot script of a machine
//	/ipxe/{program}               boot programs, and boot disks made of them
//	/ipxe/…/autoexec.ipxe         the boot script of whoever asks, for iPXE 2
//	/boot/{file}                  kernel and initramfs
//	/images/{sha256}              kept images
//
// GET and HEAD only. A MAC that no record has gets status 200 and a script that
// says so: iPXE shows its user nothing of a page with another status.
func NewHandler(assets *Assets, backend Backend, pacing Pacing, log *slog.Logger) http.Handler {
	return newHandler(assets, backend, pacing, log, stallTime)
}

func newHandler(assets *Assets, backend Backend, pacing Pacing, log *slog.Logger, stall time.Duration) http.Handler {
	h := &handler{assets: assets, backend: backend, log: log, stall: stall, rate: pacing.Rate, gate: gate{free: DefaultTurns}}
	if pacing.Turns > 0 {
		h.gate.free = pacing.Turns
	}
	r := chi.NewRouter()
	r.Use(middleware.CleanPath)
	r.Use(middleware.GetHead)
	r.Get("/ipxe/script/{mac}/auto.ipxe", h.serve(h.script))
	r.Get("/ipxe/*", h.serve(h.program))
	r.Get("/boot/{file}", h.serve(h.bootFile))
	r.Get("/images/{digest}", h.serve(h.image))
	r.NotFound(h.serve(func(w *sender, r *http.Request) error {
		return h.refuse(w, r, r.URL.Path, fs.ErrNotExist)
	}))
	return http.MaxBytesHandler(r, 0)
}

// serve wraps the writer and logs what the answer could not say.
func (h *handler) serve(f func(*sender, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := newSender(w, h.stall)
		s.Header().Set("X-Content-Type-Options", "nosniff")
		s.Header().Set("Cache-Control", "no-store")
		if err := f(s, r); err != nil {
			h.log.LogAttrs(r.Context(), slog.LevelError, "boot file not served", slog.String("client", client(r).String()), slog.Any("error", err))
		}
	}
}

// script serves a machine's boot script.
func (h *handler) script(w *sender, r *http.Request) error {
	mac, err := hardware.ParseMAC(param(r, "mac"))
	if err != nil {
		h.observe(r, Observation{Reason: hardware.ReasonBadName, Detail: err.Error()})
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil
	}
	return h.sendScript(w, r, mac, Script)
}

// sendScript answers with what write makes for a machine; for a MAC of zeros it says
// that nobody knows who asks.
func (h *handler) sendScript(w *sender, r *http.Request, mac hardware.MAC, write func(ScriptInput) ([]byte, error)) error {
	start := time.Now()
	in, reason := ask(r.Context(), h.backend, mac, client(r))
	if !in.HTTP.IsValid() {
		in.HTTP = local(r)
	}
	body, err := write(in)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.Header().Set("X-Rackstrap-Reason", plain(string(reason)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return err
	}
	if _, werr := w.Write(body); werr == nil && r.Method == http.MethodGet {
		h.observe(r, Observation{MAC: mac, Reason: reason, Bytes: int64(len(body)), Took: time.Since(start)})
	}
	return err
}

// program serves a boot program. shim asks for its next stage beside itself.
func (h *handler) program(w *sender, r *http.Request) error {
	name := param(r, "*")
	if isAutoexec(name) {
		return h.autoexec(w, r, name)
	}
	if reason, _ := SentReason(name); reason != hardware.ReasonProgramSent {
		return h.refuse(w, r, name, fs.ErrNotExist)
	}
	return h.asset(w, r, name)
}

// autoexec serves the operator's autoexec.ipxe of that name, else the boot script of
// whoever asks.
func (h *handler) autoexec(w *sender, r *http.Request, name string) error {
	f, err := h.assets.Open(name)
	if err == nil {
		defer f.Close()
		_, err = h.send(w, r, name, f)
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return h.refuse(w, r, name, err)
	}
	mac, _ := h.backend.Asks(r.Context(), client(r))
	return h.sendScript(w, r, mac, Autoexec)
}

// bootFile serves kernel and initramfs.
func (h *handler) bootFile(w *sender, r *http.Request) error {
	name := param(r, "file")
	if reason, ok := SentReason(name); !ok || reason == hardware.ReasonProgramSent {
		return h.refuse(w, r, name, fs.ErrNotExist)
	}
	return h.asset(w, r, name)
}

func (h *handler) asset(w *sender, r *http.Request, name string) error {
	start := time.Now()
	f, err := h.assets.Open(name)
	if _, disk := bootDisks[strings.TrimLeft(name, "/")]; disk && errors.Is(err, fs.ErrNotExist) {
		f, err = h.assets.bootDisk(strings.TrimLeft(name, "/"), local(r).Addr())
	}
	if err != nil {
		return h.refuse(w, r, name, err)
	}
	defer f.Close()
	if ok, err := h.send(w, r, name, f); !ok || r.Method != http.MethodGet || w.status != http.StatusOK {
		return err
	}
	o := Observation{Detail: name, Bytes: w.bytes, Took: time.Since(start)}
	o.Reason, _ = SentReason(name)
	if w.err != nil || w.bytes != f.Size() {
		o.Reason = hardware.ReasonProgramFailed
		o.Detail = fmt.Sprintf("%s: %d of %d bytes", name, w.bytes, f.Size())
	}
	h.observe(r, o)
	return nil
}

// send answers with an asset, at the pace of its client; false: it could not be read.
func (h *handler) send(w *sender, r *http.Request, name string, f *Asset) (bool, error) {
	sum, err := f.SHA256()
	if err != nil {
		return false, h.refuse(w, r, name, err)
	}
	w.Header().Set("Cache-Control", "no-cache") // the name stays, the content changes
	defer h.pace(w, r, name, f.Size())()
	h.content(w, r, name, sum, time.Time{}, f)
	return true, nil
}

// pace has what follows sent at the pace of its client, in its turn; done ends that.
func (h *handler) pace(w *sender, r *http.Request, name string, size int64) (done func()) {
	if err := setRate(r, h.rate); err != nil {
		h.log.LogAttrs(r.Context(), slog.LevelWarn, "a boot file is not paced", slog.String("client", client(r).String()), slog.Any("error", err))
	}
	if r.Method != http.MethodGet || size < turnFrom {
		return func() {}
	}
	w.turn, w.ctx = h.gate.join(client(r)), r.Context()
	if !isClosed(w.turn.come()) {
		h.observe(r, Observation{Reason: hardware.ReasonPaced, Detail: name})
	}
	return w.turn.leave
}

// types are the media types that UEFI HTTP boot goes by (UEFI 2.10 section 24.7.3.1).
var types = map[string]string{
	".efi": "application/efi", ".img": "application/vnd.efi-img", ".iso": "application/vnd.efi-iso",
}

// content answers with a file whose SHA-256 is its ETag, ranges and conditions
// included.
func (h *handler) content(w *sender, r *http.Request, name, sum string, modified time.Time, f io.ReadSeeker) {
	kind := types[strings.ToLower(path.Ext(name))]
	if kind == "" {
		kind = "application/octet-stream"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("ETag", `"`+sum+`"`)
	http.ServeContent(w, r, "", modified, f)
}

// refuse answers for a file that is not served. Only what the operator has to
// repair is an error.
func (h *handler) refuse(w *sender, r *http.Request, name string, err error) error {
	switch {
	case errors.Is(err, ErrAssetName):
		h.observe(r, Observation{Reason: hardware.ReasonBadName, Detail: name})
	case errors.Is(err, fs.ErrNotExist) && Tried(name):
	case errors.Is(err, fs.ErrNotExist):
		h.observe(r, Observation{Reason: hardware.ReasonFileNotFound, Detail: name})
	default:
		http.Error(w, "the appliance cannot read this file; its log says why", http.StatusInternalServerError)
		return fmt.Errorf("%s: %w", hardware.PlainText(name, maxDetail), err)
	}
	http.Error(w, "no such file", http.StatusNotFound)
	return nil
}

func (h *handler) observe(r *http.Request, o Observation) {
	o.Client = client(r)
	o.Detail = hardware.PlainText(o.Detail, maxDetail)
	// The request's context has ended where the client is gone, which is when it
	// matters most to say so.
	h.backend.Observe(context.WithoutCancel(r.Context()), o)
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

// local is the address of ours that the client asked, which therefore it can reach.
func local(r *http.Request) netip.AddrPort {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		ap := a.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}

// param is a part of the path. Where a client escaped a character that needs none,
// as in 52%3A54…, chi gives it escaped.
func param(r *http.Request, name string) string {
	raw := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return raw
	}
	s, err := url.PathUnescape(raw)
	if err != nil {
		return raw
	}
	return strings.ToValidUTF8(s, "?")
}
