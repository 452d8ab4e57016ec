package hardware

import (
	"strings"
	"testing"
	"time"
)

func TestOwnerHas(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		prefix, owner string
		want          bool
	}{
		{"capi/prod", "capi/prod", true},
		{"capi/prod", "capi/prod/web-1", true},
		{"capi/prod", "capi/production", false},
		{"capi/prod", "capi/prod-2", false},
		{"capi/prod", "capi/pro", false},
		{"capi/prod/", "capi/prod/x", true},
		{"capi/prod/", "capi/prod", false},
		{"team-", "team-a", true},
		{"team", "team-a", false},
		{"", "anybody", false},
		{"a", "", false},
		{"é", "é/x", true},
	} {
		if got := OwnerHas(tc.prefix, tc.owner); got != tc.want {
			t.Errorf("OwnerHas(%q, %q) = %v", tc.prefix, tc.owner, got)
		}
	}
}

func TestRoleIncludes(t *testing.T) {
	t.Parallel()
	order := []Role{RoleViewer, RoleOperator, RoleAdmin}
	for i, have := range order {
		for j, need := range order {
			if have.Includes(need) != (i >= j) {
				t.Errorf("%s includes %s: %v", have, need, i < j)
			}
		}
	}
	for _, odd := range []Role{RoleClaimer, "", "root"} {
		if odd.Includes(RoleViewer) || RoleAdmin.Includes(odd) || odd.Includes(odd) {
			t.Errorf("%q is in the order", odd)
		}
	}
}

func TestTokenValidate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		spec TokenSpec
		want string
	}{
		{"ci", TokenSpec{Role: RoleOperator}, ""},
		{"capi", TokenSpec{Role: RoleClaimer, OwnerPrefix: "capi/", Selector: "pool=capi"}, ""},
		{"ci", TokenSpec{}, "spec.role"},
		{"ci", TokenSpec{Role: "root"}, "admin, operator, viewer or claimer"},
		{"Ci", TokenSpec{Role: RoleViewer}, "metadata.name"},
		{"socket", TokenSpec{Role: RoleViewer}, "metadata.name"},
		{"capi", TokenSpec{Role: RoleClaimer}, "spec.ownerPrefix"},
		{"capi", TokenSpec{Role: RoleClaimer, OwnerPrefix: "a\nb"}, "spec.ownerPrefix"},
		{"capi", TokenSpec{Role: RoleClaimer, OwnerPrefix: "a", Selector: "a in ("}, "spec.selector"},
		{"ci", TokenSpec{Role: RoleAdmin, OwnerPrefix: "a"}, "limit a claimer"},
	} {
		err := (&Token{Meta: Meta{Name: tc.name}, Spec: tc.spec}).Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %+v: %v, want %q", tc.name, tc.spec, err, tc.want)
		}
	}
	end := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	k := Token{Spec: TokenSpec{Expires: end}}
	if k.Expired(end.Add(-1)) || !k.Expired(end) || (&Token{}).Expired(end) {
		t.Error("a token ends at its end, and one without an end never")
	}
}

// FuzzParseToken: what is taken has the one form, gives its id, and an error never
// repeats the secret.
func FuzzParseToken(f *testing.F) {
	secret, _ := NewTokenSecret()
	for _, s := range []string{
		secret, secret[:len(secret)-1], secret + "a", strings.ToUpper(secret), strings.Replace(secret, "_", "-", 2), "rst_", "", "rst_" + strings.Repeat("_", TokenLen-4),
		strings.Replace(secret, "rst_", "rsu_", 1), " " + secret, secret + "\n", "Bearer " + secret, strings.Repeat("é", TokenLen),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseToken(s)
		if err != nil {
			if len(s) > 16 && strings.Contains(err.Error(), s[4:]) {
				t.Errorf("%v repeats the secret", err)
			}
			return
		}
		if len(s) != TokenLen || len(id) != tokenIDLen || !strings.HasPrefix(s, tokenPrefix+id+"_") {
			t.Fatalf("%q: id %q", s, id)
		}
		if raw, err := tokenText().DecodeString(id); err != nil || len(raw) != tokenIDBytes {
			t.Errorf("%q: id %q is not ours: %v", s, id, err)
		}
		if !HashToken(s).Equal(HashToken(s)) || HashToken(s).Equal(HashToken(s+"x")) {
			t.Error("the hash does not tell secrets apart")
		}
	})
}

func TestNewTokenSecret(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		secret, id := NewTokenSecret()
		got, err := ParseToken(secret)
		if err != nil || got != id || seen[secret] || seen[id] {
			t.Fatalf("%s: %q, %v", secret, got, err)
		}
		seen[secret], seen[id] = true, true
	}
}
