package rest

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/document"
	"github.com/rackstrap/rackstrap/hardware"
)

// maxBody bounds every body but an image's.
const maxBody = 4 << 20

// bodyPatience is how long a body may take to come, so that nobody holds a connection
// by sending a byte now and then.
const bodyPatience = time.Minute

// documents reads a body of YAML or JSON documents, as its Content-Type says, or by
// its first byte where there is none.
func documents(w http.ResponseWriter, r *http.Request) ([]*document.Node, error) {
	free, err := room(r.Context(), r.ContentLength)
	if err != nil {
		return nil, err
	}
	defer free()
	// a recorder in a test has no deadline; a connection has
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyPatience))
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_ = control.SetReadDeadline(time.Time{})
	if err != nil {
		return nil, err
	}
	isYAML, err := bodyIsYAML(r.Header.Get("Content-Type"), data)
	if err != nil {
		return nil, err
	}
	if err := enter(r.Context(), len(data)); err != nil {
		return nil, err
	}
	if isYAML {
		return document.YAML(data, document.DefaultLimits())
	}
	return document.JSON(data, document.DefaultLimits())
}

func bodyIsYAML(contentType string, data []byte) (bool, error) {
	if contentType == "" {
		data = bytes.TrimLeft(data, " \t\r\n")
		return len(data) > 0 && data[0] != '{', nil
	}
	t, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
	case t == "application/json" || strings.HasSuffix(t, "+json"):
		return false, nil
	case t == "application/yaml" || t == "application/x-yaml" || t == "text/yaml" || t == "text/x-yaml" || strings.HasSuffix(t, "+yaml"):
		return true, nil
	}
	return false, &api.Problem{
		Status: http.StatusUnsupportedMediaType, Code: api.CodeMediaType, Detail: "Content-Type " + strconv.Quote(hardware.PlainText(contentType, 80)) + " is not read here",
		Hint: "send `Content-Type: application/yaml` or `Content-Type: application/json`",
	}
}

// document1 reads a body of exactly one document.
func document1(w http.ResponseWriter, r *http.Request) (*document.Node, error) {
	docs, err := documents(w, r)
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		return nil, badRequest("send several with POST "+api.Base+"/apply", "the body has %d documents, wanted one", len(docs))
	}
	return docs[0], nil
}

// options reads a small body that may be missing into v.
func options(w http.ResponseWriter, r *http.Request, what string, v any) error {
	docs, err := documents(w, r)
	if err != nil || len(docs) == 0 {
		return err
	}
	if errs := document.Decode(docs[0], v); len(docs) > 1 || len(errs) > 0 {
		return &hardware.Invalid{Kind: "request", Name: what, Errors: errs}
	}
	return nil
}

// ifMatch is the revision that the request insists on (RFC 9110 section 13.1.1), 0
// where it insists on none.
func ifMatch(r *http.Request) (uint64, error) {
	v := r.Header.Get("If-Match")
	if v == "" || v == "*" {
		return 0, nil
	}
	rev, err := strconv.ParseUint(strings.Trim(v, `"`), 10, 64)
	if err != nil || rev == 0 {
		return 0, badRequest("send the ETag of a GET, or metadata.revision in quotes", "If-Match %.40q is no revision", v)
	}
	return rev, nil
}

func number(q url.Values, key string, otherwise, most uint64) (uint64, error) {
	s := q.Get(key)
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || (most > 0 && n > most) {
		return 0, badRequest("", "%s=%.40q is no number, or too large a one", key, s)
	}
	return n, nil
}

// queryKnown refuses parameters that the route does not read: a misspelt filter
// must not list everything.
func queryKnown(q url.Values, known ...string) error {
	for k := range q {
		found := false
		for _, n := range known {
			found = found || n == k
		}
		if !found {
			hint := "this route takes no parameters"
			if len(known) > 0 {
				hint = "parameters here: " + strings.Join(known, ", ")
			}
			return badRequest(hint, "parameter %.40q is not known", k)
		}
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // the client may be gone
	return nil
}
