package main

import (
	"io"
	"net"
	"testing"
)

func TestOneAddressCannotTakeAllConnections(t *testing.T) {
	t.Parallel()
	l, err := listenLimited("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 2*maxConnsPerAddr)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	var held []net.Conn
	for range maxConnsPerAddr {
		dial()
		held = append(held, <-accepted)
	}
	if _, err := dial().Read(make([]byte, 1)); err != io.EOF && !isReset(err) {
		t.Errorf("one more than allowed: %v, want the end of the connection", err)
	}
	_ = held[0].Close()
	_ = held[0].Close() // a second Close must not free a second place
	dial()
	<-accepted
	if _, err := dial().Read(make([]byte, 1)); err != io.EOF && !isReset(err) {
		t.Errorf("after a place was freed once: %v", err)
	}
}

func isReset(err error) bool {
	_, ok := err.(*net.OpError)
	return ok
}
