package client_test

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"net"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/workflow"
)

// watched counts the watches of the store.
type watched struct {
	*store.DB
	open, most atomic.Int64
}

func (w *watched) WatchEventBatches(ctx context.Context, after uint64) iter.Seq2[[]workflow.Event, error] {
	return func(yield func([]workflow.Event, error) bool) {
		n := w.open.Add(1)
		defer w.open.Add(-1)
		for {
			most := w.most.Load()
			if n <= most || w.most.CompareAndSwap(most, n) {
				break
			}
		}
		w.DB.WatchEventBatches(ctx, after)(yield)
	}
}

// streams is a daemon whose streams are read over TCP on the loopback.
func streams(t testing.TB) (*daemon, *watched, *httptest.Server) {
	d := start(t)
	w := &watched{DB: d.db}
	h := rest.New(rest.Deps{Records: w, Engine: d.e, Images: d.images, Logs: d.logs, Now: time.Now, Log: discard()})
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return d, w, srv
}

func (d *daemon) note(detail string) uint64 {
	d.t.Helper()
	d.must(d.db.AppendEvent(d.t.Context(), workflow.Event{Reason: hardware.ReasonRecordChanged, Detail: detail}))
	rev, err := d.db.Cursor(d.t.Context())
	d.must(err)
	return rev
}

// subscribe opens a stream after a cursor. It returns its connection when the answer
// has begun.
func subscribe(t testing.TB, srv *httptest.Server, after uint64) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "GET /api/v1/events HTTP/1.0\r\nHost: x\r\nAccept: text/event-stream\r\nLast-Event-ID: %d\r\n\r\n", after)
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReaderSize(conn, 2048)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "\r\n" {
			return conn, r
		}
	}
}

// message is the next event of a stream: its cursor and its line of data.
func message(r *bufio.Reader) (id uint64, data string, err error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return id, data, err
		}
		switch key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ": "); key {
		case "id":
			id, _ = strconv.ParseUint(value, 10, 64)
		case "data":
			data = value
		case "":
			if data != "" {
				return id, data, nil
			}
		}
	}
}

// A hundred streams see every event once and in order, whatever they begin with, and
// the store is watched once, or not at all when they have gone.
func TestManyStreams(t *testing.T) {
	t.Parallel()
	d, w, srv := streams(t)
	from := d.note("before")
	for i := range 20 {
		d.note(fmt.Sprint("old ", i))
	}
	const clients, events = 100, 50
	var wg sync.WaitGroup
	errs := make(chan error, clients)
	conns := make([]net.Conn, clients)
	for c := range clients {
		after := from + uint64(c%20) // some resume further back
		conn, r := subscribe(t, srv, after)
		conns[c] = conn
		wg.Go(func() {
			want := []string{}
			for i := int(after - from); i < 20; i++ {
				want = append(want, fmt.Sprint("old ", i))
			}
			for i := range events {
				want = append(want, fmt.Sprint("new ", i))
			}
			last := after
			for _, text := range want {
				id, data, err := message(r)
				if err != nil || !strings.Contains(data, fmt.Sprintf(`"detail":%q`, text)) || id <= last {
					errs <- fmt.Errorf("client %d: %d %s, %v, want %s", c, id, data, err, text)
					return
				}
				last = id
			}
		})
	}
	for i := range events {
		d.note(fmt.Sprint("new ", i))
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if w.open.Load() != 1 || w.most.Load() > 2 {
		t.Errorf("%d watches of the store, at most %d at a time", w.open.Load(), w.most.Load())
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	for w.open.Load() != 0 { // ends when the server has noticed; the test's time limit bounds it
		runtime.Gosched()
	}
}

// A client that comes back with a cursor from long ago reads on from the store and
// misses nothing.
func TestStreamFromLongAgo(t *testing.T) {
	t.Parallel()
	d, w, srv := streams(t)
	from := d.note("begin")
	const events = 5000 // more than what the feed has of the past
	var wg sync.WaitGroup
	var n atomic.Int64
	for range 64 {
		wg.Go(func() {
			for n.Add(1) <= events {
				d.must(d.db.AppendEvent(t.Context(), workflow.Event{Reason: hardware.ReasonRecordChanged, Detail: strings.Repeat("x", 300)}))
			}
		})
	}
	wg.Wait()
	_, idle := subscribe(t, srv, from+events)
	_, r := subscribe(t, srv, from)
	for i := range events {
		id, _, err := message(r)
		if err != nil || id != from+1+uint64(i) {
			t.Fatalf("event %d: cursor %d, want %d, %v", i, id, from+1+uint64(i), err)
		}
	}
	for i := range 3 {
		want := d.note(fmt.Sprint("new ", i))
		for _, s := range []*bufio.Reader{r, idle} {
			if id, _, err := message(s); err != nil || id != want {
				t.Errorf("cursor %d, want %d, %v", id, want, err)
			}
		}
	}
	if w.open.Load() != 1 {
		t.Errorf("%d watches of the store", w.open.Load())
	}
	if _, dead := subscribe(t, srv, from+100*events); true {
		if line, err := dead.ReadString('\n'); err != nil || line != "event: compacted\n" {
			t.Errorf("a cursor of the future: %q, %v", line, err)
		}
	}
}

// A client that does not read is cut off, holds up nobody, and resumes.
func TestSlowStream(t *testing.T) {
	t.Parallel()
	d, _, srv := streams(t)
	from := d.note("begin")
	_, sr := subscribe(t, srv, from)
	_, fast := subscribe(t, srv, from)
	const events = 12_000 // several times what sockets and the feed hold
	var wg sync.WaitGroup
	var n atomic.Int64
	for range 64 {
		wg.Go(func() {
			for n.Add(1) <= events {
				d.must(d.db.AppendEvent(t.Context(), workflow.Event{Reason: hardware.ReasonRecordChanged, Detail: strings.Repeat("x", 1000)}))
			}
		})
	}
	for i := range events {
		if id, _, err := message(fast); err != nil || id != from+1+uint64(i) {
			t.Fatalf("event %d: cursor %d, %v", i, id, err)
		}
	}
	wg.Wait()
	last := from
	for {
		id, _, err := message(sr)
		if err != nil {
			break // what was on its way, then the end
		}
		last = id
	}
	if last == from || last >= from+events {
		t.Fatalf("the slow client was not cut off: cursor %d of %d", last-from, events)
	}
	_, again := subscribe(t, srv, last)
	for at := last + 1; at <= from+events; at++ {
		if id, _, err := message(again); err != nil || id != at {
			t.Fatalf("resumed at %d: cursor %d, %v", at, id, err)
		}
	}
}

// BenchmarkStreams: what 1,000 subscribers on real connections cost. Run it with
// -benchtime 200x: an iteration is one event that all of them read.
func BenchmarkStreams(b *testing.B) {
	d, w, srv := streams(b)
	from := d.note("begin")
	const clients = 1000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < 2*clients+100 {
		b.Skipf("needs %d open files, there are %d (ulimit -n 4096)", 2*clients+100, limit.Cur)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := heap()
	var got sync.WaitGroup
	for range clients {
		_, r := subscribe(b, srv, from)
		go func() {
			for {
				if _, _, err := message(r); err != nil {
					return
				}
				got.Done()
			}
		}()
	}
	memory := float64(heap()-before) / clients / 1024 // the client's side of the connection too
	var start, end syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &start)
	b.ResetTimer()
	for range b.N {
		got.Add(clients)
		d.note("tick")
		got.Wait()
	}
	b.StopTimer()
	b.ReportMetric(memory, "KiB/subscriber")
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &end)
	cpu := time.Duration(end.Utime.Nano() + end.Stime.Nano() - start.Utime.Nano() - start.Stime.Nano())
	b.ReportMetric(float64(cpu.Microseconds())/float64(b.N)/1000, "cpu-ms/event")
	if w.open.Load() != 1 {
		b.Errorf("%d watches of the store", w.open.Load())
	}
}
