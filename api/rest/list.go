package rest

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

// maxPage is the most records of one page. A list without a limit has all records.
const maxPage = 10_000

// listing is how the records of a kind are filtered and sorted, besides by selector,
// name and creation.
type listing[T any] struct {
	// filters make, by parameter, a test of its value.
	filters map[string]func(value string) (func(*T) bool, error)
	// sorts are, by name, the text by which records compare; equal ones by their name.
	sorts map[string]func(*T) string
}

// params are the parameters that a list reads.
func (l listing[T]) params() []string {
	return slices.Sorted(slices.Values(slices.AppendSeq([]string{"continue", "limit", "selector", "sort"}, maps.Keys(l.filters))))
}

// cursor is where a page ended. It names the record, not a position: what is created
// or deleted meanwhile moves nothing else in or out of the following pages.
type cursor struct {
	Key  string `json:"k,omitempty"` // what it is sorted by
	Name string `json:"n"`
	// Query is a hash of what the list was asked for.
	Query uint32 `json:"q"`
}

// listQuery is what a request wants of a list.
type listQuery[T any] struct {
	tests   []func(*T) bool
	key     func(*T) string // nil: the name
	descend bool
	limit   int // 0: all
	after   *cursor
	hash    uint32
}

// query reads the parameters of a list.
func (rs *resource[T]) query(l listing[T], q url.Values) (listQuery[T], error) {
	var out listQuery[T]
	for k, v := range q {
		if len(v) > 1 {
			return out, badRequest("state and selector take several values, with commas", "%s is there %d times", k, len(v))
		}
	}
	sel, err := hardware.ParseSelector(q.Get("selector"))
	if err != nil {
		return out, badRequest("for example ?selector=rack=a1,tier!=test", "%v", err)
	}
	if !sel.Empty() {
		out.tests = append(out.tests, func(v *T) bool { return sel.Matches(rs.meta(v).Labels) })
	}
	for _, name := range slices.Sorted(maps.Keys(l.filters)) {
		if !q.Has(name) {
			continue
		}
		test, err := l.filters[name](q.Get(name))
		if err != nil {
			return out, err
		}
		out.tests = append(out.tests, test)
	}
	if err := rs.order(l, q.Get("sort"), &out); err != nil {
		return out, err
	}
	limit, err := number(q, "limit", 0, maxPage)
	if err != nil {
		return out, err
	}
	out.limit = int(limit)
	return out, out.resume(q)
}

// order reads ?sort=.
func (rs *resource[T]) order(l listing[T], by string, out *listQuery[T]) error {
	by, out.descend = strings.CutPrefix(by, "-")
	switch f := l.sorts[by]; {
	case by == "" && !out.descend, by == "name":
	case by == "created":
		out.key = func(v *T) string { return timeKey(rs.meta(v).Created) }
	case f != nil:
		out.key = f
	default:
		names := slices.AppendSeq([]string{"created", "name"}, maps.Keys(l.sorts))
		slices.Sort(names)
		return badRequest("with a dash before it the order is reversed: sort=-created", "sort=%.40q is not known (one of %s)", by, strings.Join(names, ", "))
	}
	return nil
}

// resume reads ?continue=, which belongs to the list as it was asked for first.
func (lq *listQuery[T]) resume(q url.Values) error {
	h := fnv.New32a()
	for _, k := range slices.Sorted(maps.Keys(q)) {
		if k != "continue" && k != "limit" {
			_, _ = h.Write([]byte(k + "=" + q.Get(k) + "\n")) // a hash takes everything
		}
	}
	lq.hash = h.Sum32()
	text := q.Get("continue")
	if text == "" {
		return nil
	}
	lq.after = new(cursor)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(raw, lq.after) != nil || lq.after.Query != lq.hash {
		return badRequest("send `continue` of the last page as it came, with the same selector, filters and sort, or begin anew without it", "continue=%.40q does not belong to this list", text)
	}
	return nil
}

// row is a record and what it is sorted by.
type row[T any] struct {
	key, name string
	v         *T
}

// page picks the page of the records that the query wants.
func (rs *resource[T]) page(lq listQuery[T], all []*T) (rows []row[T], total, remaining int, next string) {
	rows = make([]row[T], 0, len(all))
	for _, v := range all {
		if slices.ContainsFunc(lq.tests, func(test func(*T) bool) bool { return !test(v) }) {
			continue
		}
		r := row[T]{name: rs.meta(v).Name, v: v}
		if lq.key != nil {
			r.key = lq.key(v)
		}
		rows = append(rows, r)
	}
	order := 1
	if lq.descend {
		order = -1
	}
	compare := func(a, b row[T]) int {
		return order * cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.name, b.name))
	}
	slices.SortFunc(rows, compare)
	total = len(rows)
	if lq.after != nil {
		i, found := slices.BinarySearchFunc(rows, row[T]{key: lq.after.Key, name: lq.after.Name}, compare)
		if found {
			i++
		}
		rows = rows[i:]
	}
	if lq.limit > 0 && len(rows) > lq.limit {
		remaining = len(rows) - lq.limit
		rows = rows[:lq.limit]
		last := rows[lq.limit-1]
		raw, err := json.Marshal(cursor{Key: last.key, Name: last.name, Query: lq.hash})
		if err == nil { // text and a number always can be
			next = base64.RawURLEncoding.EncodeToString(raw)
		}
	}
	return rows, total, remaining, next
}

// serveList answers with the records one by one, so that a list costs no more memory
// than its largest record.
func (rs *resource[T]) serveList(s *server, l listing[T], w http.ResponseWriter, r *http.Request) error {
	lq, err := rs.query(l, r.URL.Query())
	if err != nil {
		return err
	}
	cursor, err := rs.cursor(r.Context())
	if err != nil {
		return err
	}
	all, err := rs.all(r.Context())
	if err != nil {
		return err
	}
	rows, total, remaining, next := rs.page(lq, all)
	head := api.List[json.RawMessage]{
		APIVersion: api.Version, Kind: string(rs.kind) + "List", Continue: next, Total: total, Remaining: remaining, Cursor: cursor,
	}
	return serveRows(s, w, r, head, rows, func(v *T) (json.RawMessage, error) { return rs.marshal(r.Context(), v) })
}

// serveRows writes a list without its items, and then them.
func serveRows[T any](s *server, w http.ResponseWriter, r *http.Request, list api.List[json.RawMessage], rows []row[T], marshal func(*T) (json.RawMessage, error)) error {
	list.Items = []json.RawMessage{}
	head, err := json.Marshal(list)
	if err != nil {
		return err
	}
	before, after, _ := strings.Cut(string(head), `"items":[]`)
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, 32<<10)
	_, _ = out.WriteString(before + `"items":[`) // the client may be gone
	for i, row := range rows {
		raw, err := marshal(row.v)
		if err != nil && i == 0 {
			return err
		}
		if err != nil {
			s.logInternal(r, err)
			panic(http.ErrAbortHandler) // the status is sent; a cut connection says that the list is not whole
		}
		if i > 0 {
			_ = out.WriteByte(',')
		}
		if _, err := out.Write(raw); err != nil {
			return nil
		}
	}
	_, _ = out.WriteString("]" + after + "\n")
	_ = out.Flush()
	return nil
}
