package workflow

import (
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

func TestOptionsSizes(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return strings.Repeat("x", n) }
	config := func(n int) string { return `{"ignition":{"version":"3.4.0"}}` + strings.Repeat(" ", n-32) }
	for field, of := range map[string]struct {
		limit int
		make  func(n int) Options
	}{
		"userData":      {256 << 10, func(n int) Options { return &CloudInit{UserData: text(n)} }},
		"vendorData":    {256 << 10, func(n int) Options { return &CloudInit{VendorData: text(n)} }},
		"metaData":      {64 << 10, func(n int) Options { return &CloudInit{MetaData: text(n)} }},
		"config":        {64 << 10, func(n int) Options { return &NetworkConfig{Config: text(n)} }},
		"content":       {256 << 10, func(n int) Options { return &FileWrite{Path: "/x", Content: text(n)} }},
		"ca":            {64 << 10, func(n int) Options { return &ImageWrite{Image: "x", CA: text(n)} }},
		"config ":       {256 << 10, func(n int) Options { return &Ignition{Config: config(n)} }},
		"userData ":     {256 << 10, func(n int) Options { return &SeedPartition{UserData: text(n)} }},
		"vendorData ":   {256 << 10, func(n int) Options { return &SeedPartition{VendorData: text(n)} }},
		"metaData ":     {64 << 10, func(n int) Options { return &SeedPartition{MetaData: text(n)} }},
		"networkConfig": {64 << 10, func(n int) Options { return &SeedPartition{NetworkConfig: text(n)} }},
	} {
		for _, more := range []int{0, 1} {
			c := hardware.NewChecker("workflow", "w1")
			of.make(of.limit+more).Validate(c, "with")
			err := c.Err()
			if more == 0 && err != nil {
				t.Errorf("%s of %d bytes: %.200v", field, of.limit, err)
			}
			if more == 1 && (err == nil || !strings.Contains(err.Error(), "with."+strings.TrimSpace(field)+"") || !strings.Contains(err.Error(), "the limit is")) {
				t.Errorf("%s of %d bytes: %.200v", field, of.limit+1, err)
			}
		}
	}
}

func TestValidIgnition(t *testing.T) {
	t.Parallel()
	for config, wrong := range map[string]string{
		`{"ignition":{"version":"3.4.0"}}`:                          "",
		" {\"ignition\": {\"version\": \"2.3.0\"}, \"x\": [1]}\r\n": "",
		"":                                    "is empty",
		" \n":                                 "is empty",
		"variant: fcos\nversion: 1.5.0\n":     "is not JSON at byte 1 (is it Butane?",
		"#cloud-config\n":                     "is not JSON",
		`{"ignition":{"version":"3.4.0"}`:     "is not JSON at byte 31",
		`{"ignition":{"version":"3.4.0"}} {}`: "is not JSON",
		`[]`:                                  "has to be a JSON object",
		`"secret"`:                            "has to be a JSON object",
		`{"ignition":{"version":3}}`:          "ignition.version as text",
		`{"ignition":"secret"}`:               "has to be a JSON object",
		`{}`:                                  "has no ignition.version",
		`{"ignition":{}}`:                     "has no ignition.version",
		`null`:                                "has no ignition.version",
	} {
		err := ValidIgnition(config)
		if wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%s: %v, want %q", config, err, wrong)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error quotes it: %v", config, err)
		}
	}
}

// What the new kinds hold is secret.
func TestSeedsAreSecret(t *testing.T) {
	t.Parallel()
	i := hardware.Redact(&Ignition{Config: "s3cret"})
	p := hardware.Redact(&SeedPartition{UserData: "s3cret", MetaData: "m"})
	if i.Config != hardware.Redacted || p.UserData != hardware.Redacted || p.MetaData != "m" {
		t.Errorf("%+v %+v", i, p)
	}
}
