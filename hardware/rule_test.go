package hardware

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// found is a machine as discovery makes it.
func found() *Hardware {
	return &Hardware{
		Meta: Meta{Name: "m1", Labels: map[string]string{"rack": "r1"}},
		Spec: Spec{Interfaces: []NIC{{MAC: MAC{0x52, 0x54, 0, 1, 2, 3}}}},
		Facts: &Facts{
			Firmware: "uefi", Arch: "amd64", Vendor: "Dell Inc.", Product: "PowerEdge R640", Serial: "ABC1234", CPUs: 32, MemoryBytes: 64 << 30,
			BMC:   &BMCFact{Address: netip.MustParseAddr("10.9.0.1")},
			Disks: []DiskFact{{Path: "/dev/sda", Bytes: 480e9, Model: "MZ7LH480", Transport: "sata"}, {Path: "/dev/nvme0n1", Bytes: 1e12, Model: "Samsung PM983", Transport: "nvme"}},
			NICs:  []NICFact{{Name: "eno1", MAC: MAC{0x52, 0x54, 0, 1, 2, 3}, Driver: "i40e", Link: true, Mbps: 10000}, {Name: "eno2", MAC: MAC{0x52, 0x54, 0, 1, 2, 4}, Driver: "igb"}},
		},
	}
}

func rule(name string, s RuleSpec) *Rule { return &Rule{Meta: Meta{Name: name}, Spec: s} }

func TestJudge(t *testing.T) {
	t.Parallel()
	label := func(k, v string) map[string]string { return map[string]string{k: v} }
	facts := func(k, v string) RuleMatch { return RuleMatch{Facts: map[string]string{k: v}} }
	for _, tc := range []struct {
		name  string
		rules []*Rule
		want  Verdict
	}{
		{"no rules", nil, Verdict{}},
		{"every machine", []*Rule{rule("a", RuleSpec{Match: RuleMatch{All: true}, Accept: true})}, Verdict{Rules: []string{"a"}, Accept: true}},
		{
			"an empty match that was not refused",
			[]*Rule{rule("a", RuleSpec{Accept: true})},
			Verdict{Against: map[string]string{"a": "it asks for nothing and does not say all: true"}},
		},
		{
			"by priority, then by name; the first that sets something wins",
			[]*Rule{
				rule("b", RuleSpec{Match: facts("vendor", "dell*"), Labels: label("tier", "b"), Provision: &RuleProvision{Template: "b"}}),
				rule("a", RuleSpec{Match: facts("vendor", "dell*"), Labels: label("tier", "a"), Provision: &RuleProvision{Template: "a"}}),
				rule("z", RuleSpec{Priority: 5, Match: facts("vendor", "dell*"), Labels: label("tier", "z")}),
			},
			Verdict{
				Rules: []string{"z", "a", "b"}, Labels: label("tier", "z"), Provision: &RuleProvision{Template: "a"},
				LeftOut: []string{"rule a: label tier=a: the machine has tier=z already", "rule b: label tier=b: the machine has tier=z already"},
			},
		},
		{
			"a label that the machine has stays",
			[]*Rule{rule("a", RuleSpec{Match: RuleMatch{All: true}, Labels: map[string]string{"rack": "r9", "new": "1"}})},
			Verdict{Rules: []string{"a"}, Labels: label("new", "1"), LeftOut: []string{"rule a: label rack=r9: the machine has rack=r1 already"}},
		},
		{
			"a selector sees the labels of rules before it",
			[]*Rule{
				rule("late", RuleSpec{Match: RuleMatch{Selector: "disk=flash,rack=r1"}, Accept: true}),
				rule("early", RuleSpec{Priority: 1, Match: facts("diskTransport", "nvme"), Labels: label("disk", "flash")}),
				rule("earlier", RuleSpec{Priority: 2, Match: RuleMatch{Selector: "disk=flash"}, Labels: label("x", "y")}),
			},
			Verdict{Rules: []string{"early", "late"}, Labels: label("disk", "flash"), Accept: true, Against: map[string]string{"earlier": "no label disk, wanted disk=flash"}},
		},
		{
			"everything that speaks against it",
			[]*Rule{rule("a", RuleSpec{Accept: true, Match: RuleMatch{
				Subnet: "rack2", Selector: "rack=r2", Requirements: Requirements{CPUs: 64, Disks: []DiskRequirement{{Count: 2, Transport: "nvme"}}},
				Facts: map[string]string{"vendor": "HP*", "assetTag": "*", "bmcAddress": "", "nicDriver": "mlx?_core", "nonsense": "*"},
			}})},
			Verdict{Against: map[string]string{"a": strings.Join([]string{
				"boots in subnet rack1, wanted rack2", "label rack=r1, wanted rack=r2", "has 32 CPUs, wanted 64",
				"lacks a nvme disk; has nvme0n1 1 TB nvme, sda 480 GB sata",
				`assetTag is not known, wanted "*"`, `bmcAddress is "10.9.0.1", wanted none`, `nicDriver is "i40e", "igb", wanted "mlx?_core"`,
				`there is no fact "nonsense"`, `vendor is "Dell Inc.", wanted "HP*"`,
			}, "; ")}},
		},
		{
			"facts of which there are several, a MAC, what is not known, a size",
			[]*Rule{rule("a", RuleSpec{Accept: true, Match: RuleMatch{
				Subnet: "rack1", Requirements: Requirements{Memory: "64Gi", NICs: []NICRequirement{{Mbps: 10000}}},
				Facts: map[string]string{"diskModel": "*pm983", "mac": "52:54:00:01:02:04", "assetTag": "", "bmcAddress": "10.9.*"},
			}})},
			Verdict{Rules: []string{"a"}, Accept: true},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := found()
			if got := Judge(tc.rules, h, "rack1"); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
			if !reflect.DeepEqual(h, found()) {
				t.Error("the machine was changed")
			}
		})
	}
}

func TestJudgeWithoutFacts(t *testing.T) {
	t.Parallel()
	h := found()
	h.Facts = nil
	rules := []*Rule{
		rule("facts", RuleSpec{Accept: true, Match: RuleMatch{Facts: map[string]string{"vendor": "", "mac": "*"}}}),
		rule("subnet", RuleSpec{Accept: true, Match: RuleMatch{Subnet: "rack1", Requirements: Requirements{CPUs: 1}, Facts: map[string]string{"vendor": "*"}}}),
		rule("all", RuleSpec{Labels: map[string]string{"seen": "yes"}, Match: RuleMatch{All: true}}),
	}
	none := "no facts known yet: boot its worker once with `rackstrap hardware inspect m1`"
	want := Verdict{
		Rules: []string{"all"}, Labels: map[string]string{"seen": "yes"},
		Against: map[string]string{"facts": none, "subnet": "it is not known in which subnet the machine boots, wanted rack1; " + none},
	}
	if got := Judge(rules, h, ""); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestJudgeHostile: facts are only text. What a machine says of itself can neither stand
// for another pattern nor break a sentence, and more labels than a record holds are left
// out.
func TestJudgeHostile(t *testing.T) {
	t.Parallel()
	h := found()
	h.Facts.Vendor, h.Facts.Product = "*", "\x1b[2Jevil\n\"; accept"
	h.Meta.Labels = map[string]string{}
	for i := range MaxLabels - 1 {
		h.Meta.Labels[fmt.Sprintf("l%d", i)] = "x"
	}
	h.Facts.Cap()
	got := Judge([]*Rule{
		rule("a", RuleSpec{Accept: true, Match: RuleMatch{Facts: map[string]string{"vendor": "Dell*"}}}),
		rule("b", RuleSpec{Accept: true, Match: RuleMatch{Facts: map[string]string{"product": "Power*"}}}),
		rule("c", RuleSpec{Labels: map[string]string{"y": "1", "z": "1"}, Match: RuleMatch{All: true}}),
	}, h, "")
	want := Verdict{
		Rules: []string{"c"}, Labels: map[string]string{"y": "1"}, LeftOut: []string{"rule c: label z=1: the machine has 64 labels, which is the limit"},
		Against: map[string]string{"a": `vendor is "*", wanted "Dell*"`, "b": `product is " [2Jevil '; accept", wanted "Power*"`},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestJudgeOrder: what the rules say does not depend on the order in which they come,
// and asking twice, with the labels of the first answer, says nothing new.
func TestJudgeOrder(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	matches := []RuleMatch{
		{All: true},
		{Selector: "a=1"},
		{Selector: "!b"},
		{Selector: "c notin (2)"},
		{Subnet: "rack1"},
		{Facts: map[string]string{"vendor": "dell*"}},
		{Facts: map[string]string{"vendor": "hp*"}},
	}
	for range 500 {
		var rules []*Rule
		for i := range 1 + rnd.IntN(8) {
			s := RuleSpec{Priority: rnd.IntN(3), Match: matches[rnd.IntN(len(matches))], Accept: rnd.IntN(4) == 0, Labels: map[string]string{}}
			for _, k := range []string{"a", "b", "c", "rack"} {
				if rnd.IntN(2) == 0 {
					s.Labels[k] = fmt.Sprint(rnd.IntN(3))
				}
			}
			if rnd.IntN(3) == 0 {
				s.Provision = &RuleProvision{Template: fmt.Sprintf("t%d", i)}
			}
			rules = append(rules, rule(fmt.Sprintf("r%d", i), s))
		}
		h := found()
		want := Judge(rules, h, "rack1")
		for range 5 {
			rnd.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
			if got := Judge(rules, h, "rack1"); !reflect.DeepEqual(got, want) {
				t.Fatalf("in another order\ngot  %+v\nwant %+v", got, want)
			}
		}
		if len(want.Rules)+len(want.Against) != len(rules) {
			t.Fatalf("not every rule is told of: %+v", want)
		}
		for k := range want.Labels {
			if _, had := h.Meta.Labels[k]; had {
				t.Fatalf("label %s was there before: %+v", k, want)
			}
		}
		if !slices.IsSortedFunc(want.Rules, func(a, b string) int { return inOrder(byRuleName(rules, a), byRuleName(rules, b)) }) {
			t.Fatalf("not in their order: %v", want.Rules)
		}
		maps.Copy(h.Meta.Labels, want.Labels)
		for k, v := range Judge(rules, h, "rack1").Labels {
			if want.Labels[k] != "" {
				t.Fatalf("label %s=%s is put on it twice", k, v)
			}
		}
	}
}

func byRuleName(rules []*Rule, name string) *Rule {
	return rules[slices.IndexFunc(rules, func(r *Rule) bool { return r.Meta.Name == name })]
}

func TestRuleValidate(t *testing.T) {
	t.Parallel()
	ok := RuleSpec{Match: RuleMatch{All: true}, Accept: true}
	with := func(change func(*RuleSpec)) RuleSpec {
		s := ok
		change(&s)
		return s
	}
	facts := func(k, v string) RuleSpec {
		return RuleSpec{Match: RuleMatch{Facts: map[string]string{k: v}}, Accept: true}
	}
	for _, tc := range []struct {
		name string
		spec RuleSpec
		want string // part of the error; empty is right
	}{
		{"all", ok, ""},
		{"labels only", RuleSpec{Match: RuleMatch{Subnet: "rack1"}, Labels: map[string]string{"a": "b"}}, ""},
		{"no match", RuleSpec{Accept: true}, "spec.match: asks for nothing, which every machine has (if every machine is meant, write all: true)"},
		{"all and more", with(func(s *RuleSpec) { s.Match.Selector = "a=b" }), "spec.match.all: is true, and there are conditions beside it"},
		{"nothing to do", RuleSpec{Match: RuleMatch{All: true}}, "spec: does nothing with the machines that match"},
		{"priority", with(func(s *RuleSpec) { s.Priority = 1 << 40 }), "spec.priority: is 1099511627776, wanted -1000000 to 1000000"},
		{"selector", RuleSpec{Match: RuleMatch{Selector: "a=="}, Accept: true}, ""},
		{"bad selector", RuleSpec{Match: RuleMatch{Selector: "a in b"}, Accept: true}, "spec.match.selector: selector \"a in b\": at character 6: in takes a list in brackets"},
		{"a misspelt fact", facts("vender", "*"), `spec.match.facts: there is no fact "vender" (did you mean vendor?)`},
		{"a fact of nobody", facts("zzzzzzzz", "*"), `spec.match.facts: there is no fact "zzzzzzzz" (one of arch, assetTag, bios,`},
		{"a number", facts("cpus", "32"), `spec.match.facts: "cpus" is a number, no text (ask for it in spec.match.requirements.cpus)`},
		{"a long pattern", facts("vendor", strings.Repeat("*a", 200)), "spec.match.facts.vendor: has 400 bytes, the limit is 256"},
		{"a pattern with a line break", facts("vendor", "a\nb"), "spec.match.facts.vendor: \"a\\nb\" has characters that no fact has"},
		{"a MAC with dashes", facts("mac", "52-54-*"), `spec.match.facts.mac: "52-54-*" is no part of a MAC (write it as 52:54:00:*)`},
		{"a size", RuleSpec{Match: RuleMatch{Requirements: Requirements{Memory: "much"}}, Accept: true}, "spec.match.requirements.memory"},
		{"a label", with(func(s *RuleSpec) { s.Labels = map[string]string{"a b": "c"} }), "spec.labels"},
		{"a template", with(func(s *RuleSpec) { s.Provision = &RuleProvision{Template: "No"} }), "spec.provision.template"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := rule("r", tc.spec).Validate()
			var invalid *Invalid
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (!errors.As(err, &invalid) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestRuleFacts: every text that a machine reports of itself as a whole can be asked
// for, by the name it has in JSON.
func TestRuleFacts(t *testing.T) {
	t.Parallel()
	names := RuleFacts()
	f := reflect.TypeFor[Facts]()
	for i := range f.NumField() {
		name, _, _ := strings.Cut(f.Field(i).Tag.Get("json"), ",")
		if f.Field(i).Type.Kind() == reflect.String && !slices.Contains(names, name) {
			t.Errorf("no rule can ask for %s", name)
		}
	}
	all := Facts{}
	for _, i := range reflect.VisibleFields(f) {
		if i.Type.Kind() == reflect.String {
			reflect.ValueOf(&all).Elem().FieldByIndex(i.Index).SetString("v-" + i.Name)
		}
	}
	for name, of := range ruleFacts() {
		got := of(&Hardware{}, &all)
		if _, ok := f.FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, name) }); ok && (len(got) != 1 || !strings.EqualFold(got[0], "v-"+name)) {
			t.Errorf("%s reads %v", name, got)
		}
	}
}
