package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/image"
	"github.com/rackstrap/rackstrap/store/image/catalogue"
	"github.com/rackstrap/rackstrap/store/image/fetch"
)

// newImages makes what fetches and keeps images. Files that a crash left, and nobody
// needs, go first: nobody uploads yet. Files that stay do no harm.
func newImages(ctx context.Context, c imagesConfig, db *store.DB, files *image.Store, log *slog.Logger) (*catalogue.Manager, error) {
	proxy, err := proxyFunc(c.Proxy)
	if err != nil {
		return nil, err
	}
	var ca []byte
	if c.CA != "" {
		if ca, err = os.ReadFile(c.CA); err != nil {
			return nil, fmt.Errorf("images.ca: %w", err)
		}
	}
	f, err := fetch.New(fetch.Options{Proxy: proxy, CA: ca, Agent: "rackstrap/" + version})
	if err != nil {
		return nil, fmt.Errorf("images.ca: %s: %w", c.CA, err)
	}
	gone, err := catalogue.Sweep(ctx, db, files)
	if err != nil {
		log.Warn("image files that nobody needs are not deleted", "err", err)
	}
	if len(gone) > 0 {
		log.Info("image files deleted: nobody needs them", "digests", gone)
	}
	return catalogue.New(catalogue.Config{Records: db, Files: files, Fetch: f, Now: time.Now, Log: log}), nil
}

// proxyFunc is images.proxy, else what HTTP_PROXY and HTTPS_PROXY say; NO_PROXY holds
// in both cases.
func proxyFunc(proxy string) (func(*url.URL) (*url.URL, error), error) {
	c := httpproxy.FromEnvironment()
	if proxy != "" {
		if err := validProxy(proxy); err != nil {
			return nil, err
		}
		c.HTTPProxy, c.HTTPSProxy = proxy, proxy
	}
	return c.ProxyFunc(), nil
}

func validProxy(s string) error {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5") || u.Host == "" {
		return errors.New("images.proxy: is no URL of a proxy (write it as http://proxy.example.net:3128)") // it may hold a password
	}
	return nil
}

var _ rest.Images = (*catalogue.Manager)(nil)
