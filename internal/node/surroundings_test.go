package node

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/slurmconf"
)

// A thread keeps the time of its first sighting for as long as it is in the same
// wait; one that has run, or gone, is forgotten.
func TestStuckThreadsAreRemembered(t *testing.T) {
	noon := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	thread := func(pid int, switches uint64) gpu.Stuck {
		return gpu.Stuck{PID: pid, TID: pid, Start: gpu.Some[uint64](9), Switches: gpu.Some(switches)}
	}
	var m Memory
	look := func(at time.Time, faults []gpu.Fault, stuck ...gpu.Stuck) {
		m.learnStuck(check.Input{Node: gpu.Node{Time: at, Host: &gpu.Host{Stuck: stuck, Faults: faults}}})
	}
	later := noon.Add(time.Minute)
	look(noon, nil, thread(1, 5), thread(2, 5), thread(3, 5))
	look(later, nil, thread(1, 5), thread(2, 6))
	want := []check.Stuck{{Stuck: thread(1, 5), First: noon}, {Stuck: thread(2, 6), First: later}}
	if !reflect.DeepEqual(m.Stuck, want) {
		t.Errorf("got %+v", m.Stuck)
	}
	m.learnStuck(check.Input{}) // a prolog does not look
	if len(m.Stuck) != 2 {
		t.Error("a look without the host forgot them")
	}
	look(later.Add(time.Minute), []gpu.Fault{{Call: "/proc", Kind: gpu.FaultTimeout}}, thread(1, 5))
	if !reflect.DeepEqual(m.Stuck, want) {
		t.Errorf("a look that did not see all processes forgot one: %+v", m.Stuck)
	}
}

// A prolog's reading, which leaves out what surrounds the GPUs, does not serve
// the health check; the other way round it does.
func TestReadingWithoutHostIsNotShared(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	asked := []bool{}
	ask := func(_ context.Context, req driver.Request) driver.Reading {
		asked = append(asked, req.Host)
		r := driver.Reading{Answer: gpu.AnswerWhole, Node: gpu.Node{Time: time.Now()}}
		if req.Host {
			r.Node.Host = &gpu.Host{}
		}
		return r
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for _, host := range []bool{false, true, true, false} {
		_, _, written, err := s.share(ctx, wanted{host: host, maxAge: time.Minute, now: time.Now}, ask)
		if written != nil {
			err = errors.Join(err, <-written)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []bool{false, true}; !slices.Equal(asked, want) {
		t.Errorf("the probe was asked %v, want %v", asked, want)
	}
}

func TestExpectedCapabilities(t *testing.T) {
	gres, err := slurmconf.ParseGres("gres.conf", []byte("Name=gpu MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap21,/dev/nvidia-caps/nvidia-cap22\n"))
	if err != nil {
		t.Fatal(err)
	}
	e := expected(gres.ForNode("n1"), nil, slurmconf.Conf{}, "n1", &gpu.Node{})
	if want := []int{21, 22}; !slices.Equal(e.Caps, want) {
		t.Errorf("capabilities %v, want %v", e.Caps, want)
	}
}
