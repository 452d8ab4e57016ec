package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// waits is a part that runs until it is told to stop, and closes ended then.
func waits(name string, ended chan<- struct{}) part {
	return part{name: name, run: func(ctx context.Context) error {
		<-ctx.Done()
		close(ended)
		return nil
	}}
}

func TestRunAllFirstErrorStopsAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		one, two := make(chan struct{}), make(chan struct{})
		fail := make(chan struct{})
		parts := []part{
			waits("one", one),
			{name: "two", run: func(ctx context.Context) error {
				<-ctx.Done()
				close(two)
				return errors.New("came second")
			}},
			{name: "three", run: func(context.Context) error { <-fail; return boom }},
		}
		ready := 0
		done := make(chan error, 1)
		go func() { done <- runAll(t.Context(), parts, func() { ready++ }) }()
		synctest.Wait()
		if ready != 1 {
			t.Errorf("ready was called %d times", ready)
		}
		select {
		case <-one:
			t.Error("a part was stopped without a reason")
		default:
		}
		close(fail)
		err := <-done
		if !errors.Is(err, boom) || err.Error() != "three: boom" {
			t.Errorf("got %v", err)
		}
		<-one // ended before runAll returned
		<-two
	})
}

func TestRunAllCleanEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		one, two := make(chan struct{}), make(chan struct{})
		done := make(chan error, 1)
		go func() { done <- runAll(ctx, []part{waits("one", one), waits("two", two)}, func() {}) }()
		synctest.Wait()
		stop()
		if err := <-done; err != nil {
			t.Errorf("got %v", err)
		}
		<-one
		<-two
	})
	if err := runAll(t.Context(), nil, func() {}); err != nil {
		t.Errorf("no parts: %v", err)
	}
}

func TestRunAllPartThatStopsByItself(t *testing.T) {
	t.Parallel()
	other := make(chan struct{})
	err := runAll(t.Context(), []part{waits("one", other), {name: "two", run: func(context.Context) error { return nil }}}, func() {})
	if err == nil || err.Error() != "two stopped by itself" {
		t.Errorf("got %v", err)
	}
	<-other
}

func TestRunAllReadyComesLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		slow, never := make(chan struct{}), make(chan struct{})
		run := func(ctx context.Context) error { <-ctx.Done(); return nil }
		ready := make(chan string, 2)
		done := make(chan error, 2)
		go func() {
			done <- runAll(ctx, []part{{name: "a", run: run}, {name: "b", run: run, ready: slow}}, func() { ready <- "slow" })
		}()
		go func() {
			done <- runAll(ctx, []part{{name: "c", run: run, ready: never}}, func() { ready <- "never" })
		}()
		synctest.Wait()
		if len(ready) != 0 {
			t.Error("ready before all parts were")
		}
		close(slow)
		synctest.Wait()
		stop()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if len(ready) != 1 || <-ready != "slow" {
			t.Error("ready was not called once, by the parts that were ready")
		}
	})
}
