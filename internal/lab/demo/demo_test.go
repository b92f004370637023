//go:build e2e

package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"gpuhooks/internal/lab"
)

// The story of `make demo` is the first end-to-end test.
func TestDemo(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	o, err := lab.Options{Log: t.Output()}.FromRepo()
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	}()
	var out bytes.Buffer
	d := &demo{lab: l, out: &out, began: time.Now()}
	parts := d.play(ctx)
	for _, p := range parts {
		t.Run(p.title, func(t *testing.T) {
			for _, s := range p.seen {
				if !s.ok {
					t.Errorf("%s: %s", s.want, s.got)
				}
			}
		})
	}
	failed, err := d.tell(context.WithoutCancel(ctx), parts)
	if err != nil {
		t.Error(err)
	}
	if failed > 0 {
		t.Logf("%s", out.String())
		t.Errorf("%d expectations did not come true", failed)
	}
}
