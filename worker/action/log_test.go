package action

import (
	"bytes"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/workflow"
)

// lines are what an action wrote into its log, without the times.
func lines(log *bytes.Buffer) string {
	text := regexp.MustCompile(`(?m)^time=\S+ level=`).ReplaceAllString(log.String(), "")
	return regexp.MustCompile(`(took|source_rate|disk_rate)=("[^"]*"|\S+)`).ReplaceAllString(text, "$1=…")
}

// wantLines checks that the log has the lines that begin so, in that order.
func wantLines(t *testing.T, log *bytes.Buffer, want ...string) {
	t.Helper()
	got := strings.Split(lines(log), "\n")
	for _, w := range want {
		found := false
		for len(got) > 0 && !found {
			found = strings.HasPrefix(got[0], w)
			got = got[1:]
		}
		if !found {
			t.Errorf("no line %s after the ones before, in:\n%s", w, lines(log))
			return
		}
	}
}

// The log of an install says which disk, which server, what came, and what it was.
func TestImageLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	env := fakeMachine(t, fakeDisk{name: "sda", size: 96 * mib}, fakeDisk{name: "sdb", size: 128 * mib, attrs: map[string]string{"device/serial": "S2"}})
	env.Log = newTestLogger(&log)
	image := testImage(16 * mib)
	packed := compress(t, image)
	server := httptest.NewServer(&faults{body: packed, ranges: true, etag: `"v1"`, cut: len(packed) / 2})
	defer server.Close()
	env.HTTPBase = server.URL
	if _, err := writeImage(t.Context(), env, workflow.ImageWrite{Image: "/i", Disk: "largest", Checksum: sum(packed)}, impatient); err != nil {
		t.Fatal(err)
	}
	wantLines(
		t, &log,
		`INFO msg="disk chosen" disk="`, `INFO msg="asking for the image" url=`+server.URL+`/i`, `INFO msg="the server answered" url=`, `INFO msg="writing image" url=`,
		`WARN msg="download interrupted, going on" url=`, `INFO msg="the download goes on" url=`, `INFO msg="image written, flushed and read back" source_bytes=`,
	)
	for _, want := range []string{"asked_for=largest", "sda (100663296 bytes", "expected=" + sum(packed), "sha256=" + sum(packed), `status="206 Partial Content"`, "source_rate=…"} {
		if !strings.Contains(lines(&log), want) {
			t.Errorf("%s is not in:\n%s", want, lines(&log))
		}
	}
}

// The log of a wipe names what was wiped, and the disks that were found.
func TestWipeLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	env := fakeMachine(t, fakeDisk{name: "sda", size: 8 * mib})
	env.Log = newTestLogger(&log)
	mustAct(t, env, workflow.KindDiskWipe, &workflow.DiskWipe{Disk: workflow.DiskAll})
	wantLines(t, &log, `INFO msg="disks chosen" asked_for=all disks="`, `INFO msg="wiping disk" disk=`, `INFO msg="disk has no discard"`, `INFO msg="disk wiped and read back" disk=`)
}

// Of files the log has names, sizes and modes; nothing of what is in them.
func TestFilesLog(t *testing.T) {
	path, env := loopDisk(t, 64*mib)
	run(t, "dd", "if="+systemImage(t, map[string]string{
		"etc/os-release": "ID=debian", "usr/bin/cloud-init": "", "etc/machine-id": "0123456789abcdef0123456789abcdef\n", "var/lib/cloud/instance/x": "stale",
	}), "of="+path, "bs=1M", "conv=fsync", "status=none")
	run(t, "partprobe", path)
	var log bytes.Buffer
	env.Log = newTestLogger(&log)
	const secret = "swordfish-hunter2"
	mustAct(t, env, workflow.KindFileWrite, &workflow.FileWrite{Disk: workflow.Disk(path), Path: "/etc/key", Content: "k=" + secret, Mode: "0640", GID: 7})
	mustAct(t, env, workflow.KindCloudInit, &workflow.CloudInit{Disk: workflow.Disk(path), MetaData: "instance-id: i1\n", UserData: "#cloud-config\npassword: " + secret, VendorData: secret})
	wantLines(
		t, &log,
		`INFO msg="disk chosen"`, `INFO msg="looked for the root" partition=`, `INFO msg=mounted partition=`, `INFO msg="file written" path=/etc/key bytes=19 mode=0640 uid=0 gid=7`, `INFO msg="flushed and unmounted"`,
		`INFO msg="disk chosen"`, `INFO msg=mounted partition=`, `INFO msg=removed path=/var/lib/cloud/instance`, `INFO msg="file written" path=/etc/machine-id bytes=0`,
		`INFO msg="file written" path=/var/lib/cloud/seed/nocloud/meta-data bytes=16 mode=0600`, `INFO msg="file written" path=/var/lib/cloud/seed/nocloud/user-data bytes=41`, `INFO msg="flushed and unmounted"`,
	)
	if strings.Contains(log.String(), secret) {
		t.Errorf("a secret is in the log:\n%s", log.String())
	}
}
