package hardware

import "testing"

func TestGoodChainURLs(t *testing.T) {
	t.Parallel()
	for _, u := range []string{
		"http://10.0.0.9/boot.ipxe", "https://boot.example.net:8443/a/b?mac=1&x=%20y", "tftp://[fd00::1]/menu.ipxe", "http://boot/~ops/auto.ipxe",
	} {
		if err := ValidChainURL(u); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
}
