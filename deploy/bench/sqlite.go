package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/api"
)

const sqliteRuns = 50

// sqlite is what one would use instead for records with labels: JSON documents in
// SQLite, with Debian's sqlite3.
type sqlite struct{ file string }

// newSQLite copies all machines from the daemon.
func newSQLite(ctx context.Context, s *server, dir string) (sqlite, error) {
	p := sqlite{file: filepath.Join(dir, "peer.sqlite")}
	d := s.socketDoor()
	c := d.client()
	defer c.CloseIdleConnections()
	w, err := c.Get("http://appliance" + api.Base + "/hardware")
	if err != nil {
		return p, err
	}
	defer w.Body.Close()
	if w.StatusCode != http.StatusOK {
		return p, fmt.Errorf("list: %s", w.Status)
	}
	list := filepath.Join(dir, "list.json")
	out, err := os.Create(list)
	if err != nil {
		return p, err
	}
	defer out.Close()
	if _, err := out.ReadFrom(w.Body); err != nil {
		return p, err
	}
	_, err = p.run(ctx, fmt.Sprintf(`create table machine (name text primary key, doc text) without rowid;
insert into machine select value->>'$.metadata.name', value from json_each(readfile('%s'), '$.items');`, list))
	return p, err
}

func (p sqlite) run(ctx context.Context, script string) (string, error) {
	cmd := exec.CommandContext(ctx, "sqlite3", "-batch", p.file)
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "Error") {
		return "", fmt.Errorf("sqlite3: %w: %.400s", err, out)
	}
	return string(out), nil
}

// ask is how long the query takes, the mean of several in one process.
func (p sqlite) ask(ctx context.Context, sql string) (time.Duration, error) {
	run := func(n int) (time.Duration, error) {
		began := time.Now()
		_, err := p.run(ctx, ".output /dev/null\n"+strings.Repeat(sql+";\n", n))
		return time.Since(began), err
	}
	once, err := run(1)
	if err != nil {
		return 0, err
	}
	many, err := run(1 + sqliteRuns)
	return max(many-once, 0) / sqliteRuns, err
}
