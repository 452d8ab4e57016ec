package metadata

import (
	"errors"
	"io/fs"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// The headers of IMDSv2.
const (
	headerToken = "X-Aws-Ec2-Metadata-Token"
	headerTTL   = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
)

// ec2 answers an installed system, which is known by its address. Who can take
// that address on its network reads the same, so nothing here is a secret unless
// the record says so.
func (h *handler) ec2(w http.ResponseWriter, r *http.Request, parts []string) {
	from := client(r)
	m, ok := h.Machines.Machine(from)
	// the worker of an install, and a machine that waits, have that address too
	if !ok || (m.Status.State != hardware.StateProvisioned && !m.Status.AwaitOS) {
		notHere(w)
		return
	}
	if slices.Equal(parts, []string{"latest", "api", "token"}) {
		h.session(w, r, m, from)
		return
	}
	if !allowed(w, r, http.MethodGet, http.MethodHead) {
		return
	}
	given := r.Header.Get(headerToken)
	if given == "" && m.Spec.Metadata.EC2RequireToken || given != "" && !h.sessions.valid(given, m, from) {
		http.Error(w, "this needs a session token: PUT /latest/api/token with the header X-aws-ec2-metadata-token-ttl-seconds: 21600", http.StatusUnauthorized)
		return
	}
	switch what := parts[1:]; {
	case parts[0] != "latest" && parts[0] != "2009-04-04":
		notHere(w)
	case len(what) == 0:
		list := "meta-data"
		if m.Spec.Metadata.EC2UserData {
			list += "\nuser-data"
		}
		h.send(w, r, contentText, []byte(list))
	case len(what) == 1 && what[0] == FileUserData:
		h.ec2UserData(w, r, m)
	case what[0] == FileMetaData:
		v, ok := ec2Tree(m, h.Machines.Subnets(), &h.Config).get(what[1:])
		if !ok {
			notHere(w)
			return
		}
		h.send(w, r, contentText, []byte(v))
		if len(what) == 1 {
			h.observe(r, Observation{MAC: macOf(m), Reason: hardware.ReasonMetadataRead, Detail: "EC2 meta-data", Bytes: int64(len(v))})
		}
	default:
		notHere(w)
	}
}

// macOf is a MAC of the machine.
func macOf(m *hardware.Hardware) hardware.MAC {
	if len(m.Spec.Interfaces) == 0 {
		return hardware.MAC{}
	}
	return m.Spec.Interfaces[0].MAC
}

func notHere(w http.ResponseWriter) {
	http.Error(w, "no such metadata, or none for the machine with this address", http.StatusNotFound)
}

// ec2UserData serves user-data where the record opts in. A session token is not
// asked for unless the record does: cloud-init gets one on EC2 itself only.
func (h *handler) ec2UserData(w http.ResponseWriter, r *http.Request, m *hardware.Hardware) {
	if !m.Spec.Metadata.EC2UserData {
		notHere(w)
		return
	}
	data, err := h.Machines.UserData(r.Context(), m.Meta.UID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		notHere(w)
	case err != nil:
		h.broken(w, r, "EC2 user-data", err)
	default:
		h.send(w, r, contentType(FileUserData), data)
		h.observe(r, Observation{MAC: macOf(m), Reason: hardware.ReasonMetadataRead, Detail: "EC2 user-data", Bytes: int64(len(data))})
	}
}

// session gives a session token. As on EC2, a request that came through a proxy
// gets none: an open proxy on the machine must not lend its address.
func (h *handler) session(w http.ResponseWriter, r *http.Request, m *hardware.Hardware, from netip.Addr) {
	if !allowed(w, r, http.MethodPut) {
		return
	}
	if len(r.Header.Values("X-Forwarded-For")) > 0 {
		http.Error(w, "session tokens are not given through proxies", http.StatusForbidden)
		return
	}
	ttl, err := strconv.Atoi(strings.TrimSpace(r.Header.Get(headerTTL)))
	life := time.Duration(ttl) * time.Second
	if err != nil || ttl < 1 || ttl > int(maxSession/time.Second) {
		http.Error(w, "X-aws-ec2-metadata-token-ttl-seconds must be 1 to 21600", http.StatusBadRequest)
		return
	}
	w.Header().Set(headerTTL, strconv.Itoa(ttl))
	h.send(w, r, contentText, []byte(h.sessions.issue(m, from, life)))
}
