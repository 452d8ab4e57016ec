package rest

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

const (
	defaultDays = 30
	maxDays     = 90
	// trendEvery is how old the days may be; what is written now is asked by many pages
	// too, and a rate needs some time between two looks.
	trendEvery = 10 * time.Second
	rateEvery  = 2 * time.Second
	// trendWait is how long a request waits for the installs of the past to be read.
	trendWait = 2 * time.Second
	// sampled is how many installs of a day are looked at part by part.
	sampled = 20
	// settles is how long after its end an install may still get parts: its system starts.
	settles = time.Hour
	// readAtOnce is how many are read for one request; the next one goes on.
	readAtOnce = 200
	// installEvents is as many events of one boot as are looked at.
	installEvents = 300
)

// InstallRecords are the installs that ended.
type InstallRecords interface {
	// Installs are those since a time, the oldest first, from memory; whole is false where
	// ctx ended before they were read.
	Installs(ctx context.Context, since time.Time) (installs []workflow.Install, whole bool)
}

func overviewRoutes() []Route {
	return []Route{{
		Method: http.MethodGet, Path: "/overview", Does: "Count machines and issues, and say how installs went, day by day", Role: RoleViewer, Claimer: true,
		Out: api.Overview{}, Query: []string{"days"}, handle: (*server).overview,
	}}
}

func (s *server) overview(w http.ResponseWriter, r *http.Request) error {
	days, err := number(r.URL.Query(), "days", defaultDays, maxDays)
	if err != nil {
		return err
	}
	cursor := s.Records.IndexCursor()
	out := countMachines(CallerFrom(r.Context()), s.Records.HardwareIndex())
	out.Cursor = cursor
	if !CallerFrom(r.Context()).Limited() { // what others install is none of its business
		out.Now = s.trend.rate(activeProgress(s.Deps), s.Now())
		all, whole, err := s.trend.days(r.Context(), s)
		if err != nil {
			return err
		}
		first := s.Now().UTC().AddDate(0, 0, 1-int(max(days, 1))).Format(time.DateOnly)
		for _, d := range all {
			if d.Day >= first {
				out.Days = append(out.Days, d)
			}
		}
		out.Partial = !whole
	}
	return writeJSON(w, http.StatusOK, out)
}

// countMachines counts those that the caller sees.
func countMachines(c Caller, all []*hardware.Hardware) api.Overview {
	out := api.Overview{States: map[hardware.State]int{}, Issues: []api.IssueCount{}, Days: []api.InstallDay{}}
	issues := map[hardware.IssueKind]*api.IssueCount{}
	for _, h := range all {
		if !c.Sees(h) {
			continue
		}
		st := &h.Status
		out.Machines++
		out.States[st.State]++
		if st.Hold {
			out.Hold++
		}
		if st.Maintenance {
			out.Maintenance++
		}
		if st.Claim != nil {
			out.Claimed++
		}
		if !c.Follows(h) {
			continue
		}
		for _, i := range st.Issues {
			n := issues[i.Kind]
			if n == nil {
				n = &api.IssueCount{Kind: i.Kind, Title: i.Kind.Title(), Severity: i.Severity}
				issues[i.Kind] = n
			}
			n.Count++
			if worse(i.Severity) < worse(n.Severity) {
				n.Severity = i.Severity
			}
			if n.Since.IsZero() || i.Since.Before(n.Since) {
				n.Since, n.Hardware, n.Fix = i.Since, h.Meta.Name, i.Fix
			}
		}
	}
	for _, n := range issues {
		out.Issues = append(out.Issues, *n)
	}
	slices.SortFunc(out.Issues, func(a, b api.IssueCount) int {
		return cmp.Or(cmp.Compare(worse(a.Severity), worse(b.Severity)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

func worse(s hardware.Severity) int { return slices.Index(severities(), s) }

// trend remembers how installs went, for all who ask.
type trend struct {
	mu    sync.Mutex // held while the days are made: others wait for them
	at    time.Time
	whole bool
	made  []api.InstallDay
	parts map[string][]api.Span // of installs that have settled, by uid

	rates  sync.Mutex
	seen   map[string]paced
	looked time.Time
	now    api.Throughput
}

// days are all that are remembered. What the store does not answer is an error.
func (t *trend) days(ctx context.Context, s *server) ([]api.InstallDay, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := s.Now()
	if t.whole && now.Sub(t.at) < trendEvery {
		return t.made, true, nil
	}
	wait, cancel := context.WithTimeout(ctx, trendWait)
	defer cancel()
	since := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-maxDays)
	installs, whole := s.Records.Installs(wait, since)
	byDay := map[string][]workflow.Install{}
	for _, i := range installs {
		day := i.Finished.UTC().Format(time.DateOnly)
		byDay[day] = append(byDay[day], i)
	}
	settled := map[string][]api.Span{} // what is not in it any more is forgotten
	if t.parts == nil {
		t.parts = map[string][]api.Span{}
	}
	left := readAtOnce
	var made []api.InstallDay
	for _, day := range slices.Backward(slices.Sorted(maps.Keys(byDay))) { // today first
		d := installDay(day, byDay[day])
		var splits [][]api.Span
		for _, i := range lastGood(byDay[day], sampled) {
			split, known := t.parts[i.UID]
			if !known && left == 0 {
				whole = false
				continue
			}
			if !known {
				left--
				var err error
				if split, err = s.partsOf(ctx, &i, now); err != nil {
					return nil, false, err
				}
			}
			if now.Sub(i.Finished) > settles {
				settled[i.UID], t.parts[i.UID] = split, split // whoever leaves now has not read in vain
			}
			if len(split) > 0 {
				splits = append(splits, split)
			}
		}
		d.Parts, d.Sampled = meanParts(splits), len(splits)
		made = append(made, d)
	}
	slices.Reverse(made)
	t.made, t.whole, t.at, t.parts = made, whole, now, settled
	return made, whole, nil
}

// lastGood are the last n that succeeded.
func lastGood(all []workflow.Install, n int) []workflow.Install {
	good := slices.DeleteFunc(slices.Clone(all), func(i workflow.Install) bool { return i.State != workflow.StateSucceeded })
	return good[max(len(good)-n, 0):]
}

// partsOf are the parts of the boot in which an install was done.
func (s *server) partsOf(ctx context.Context, i *workflow.Install, now time.Time) ([]api.Span, error) {
	if i.Boot == "" {
		return nil, nil
	}
	events, err := s.Records.Events(ctx, workflow.EventQuery{Hardware: i.HardwareUID, Boot: i.Boot, Limit: installEvents})
	if err != nil {
		return nil, err
	}
	for _, b := range Timeline("", events, now).Boots {
		if b.Boot == i.Boot {
			return slices.DeleteFunc(b.Split, func(p api.Span) bool { return !p.Ended }), nil
		}
	}
	return nil, nil // its events were trimmed
}

// installDay counts the installs of one day.
func installDay(day string, all []workflow.Install) api.InstallDay {
	out := api.InstallDay{Day: day}
	var took []time.Duration
	var writing time.Duration
	for _, i := range all {
		switch i.State {
		case workflow.StateSucceeded:
			out.Succeeded++
			took = append(took, i.Finished.Sub(i.Asked))
		case workflow.StateCancelled:
		default:
			out.Failed++
		}
		out.Bytes += i.Written
		writing += i.Writing
	}
	slices.Sort(took)
	out.P50, out.P95 = quantile(took, 50), quantile(took, 95)
	if writing > 0 {
		out.BytesPerSecond = int64(float64(out.Bytes) / writing.Seconds())
	}
	return out
}

// quantile is the smallest of the sorted values that so many percent do not exceed.
func quantile(sorted []time.Duration, percent int) hardware.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return hardware.Duration(sorted[(len(sorted)*percent+99)/100-1])
}

// meanParts is the mean of each part over all installs, in the order in which they came.
func meanParts(splits [][]api.Span) []api.MeanSpan {
	sum := map[string]time.Duration{}
	var order []string
	for _, split := range splits {
		at := 0
		for _, p := range split {
			i := slices.Index(order, p.Name)
			if i < 0 { // one that others lack goes after the one before it
				i = at
				order = slices.Insert(order, i, p.Name)
			}
			at = i + 1
			sum[p.Name] += time.Duration(p.Took)
		}
	}
	var out []api.MeanSpan
	for _, name := range order {
		out = append(out, api.MeanSpan{Name: name, Mean: hardware.Duration(sum[name] / time.Duration(len(splits)))})
	}
	return out
}

// rate adds up how fast what runs gets on, since the last look.
func (t *trend) rate(running []workflow.Progress, now time.Time) api.Throughput {
	t.rates.Lock()
	defer t.rates.Unlock()
	if !t.looked.IsZero() && now.Sub(t.looked) < rateEvery {
		return t.now
	}
	out := api.Throughput{Writing: len(running)}
	seen := map[string]paced{}
	for _, p := range running {
		is, was := paced{Progress: p}, t.seen[p.Workflow]
		switch same := was.Workflow != "" && was.Action == p.Action && was.Attempt == p.Attempt; {
		case !same || p.Done < was.Done || now.Sub(p.At) > stale:
		case p.At.After(was.At):
			is.rate = int64(float64(p.Done-was.Done) / p.At.Sub(was.At).Seconds())
		default: // nothing new was reported
			is.rate = was.rate
		}
		out.BytesPerSecond += is.rate
		seen[p.Workflow] = is
	}
	t.seen, t.looked, t.now = seen, now, out
	return out
}

// stale is how old a report may be of something that still goes on.
const stale = 10 * time.Second

// paced is a progress and its bytes in a second.
type paced struct {
	workflow.Progress
	rate int64
}
