//go:build cgo

package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/sim"
)

// hostOf is the host line of an answer, and the last presence.
func hostOf(lines []driver.Line) (h *gpu.Host, p gpu.Presence) {
	for _, l := range lines {
		if l.Host != nil {
			h = l.Host
		}
		if l.Presence != nil {
			p = *l.Presence
		}
	}
	return h, p
}

func TestReadHost(t *testing.T) {
	n := newNode(t, "dgx-a100-mig", "ib=1", "gpu.3.aer.correctable=7", "host.stuck.2000=job=77")
	dir := t.TempDir()
	a := readOnce(t, n, "--host", "--dirs", dir)
	h, p := hostOf(a.lines)
	if h == nil || len(h.Stuck) != 1 || h.Stuck[0].Job != "77" || len(h.Ports) != 1 || len(h.Faults) > 0 || len(a.faults) > 0 {
		t.Fatalf("host %+v, faults %v", h, a.faults)
	}
	if len(h.Dirs) != 1 || h.Dirs[0].Path != dir || !h.Dirs[0].Writable {
		t.Errorf("directories %+v", h.Dirs)
	}
	if c, ok := p.PCI[3].AER.Get(gpu.AERCorrectable); !ok || c != 7 || !p.PCI[3].Slot.IsSet() {
		t.Errorf("card 3 of the bus: %+v", p.PCI[3])
	}
	if len(p.Caps) == 0 || len(p.CapMinors) < len(p.Caps) {
		t.Errorf("capabilities %v, devices %v", p.Caps, p.CapMinors)
	}
	if len(a.gpus) != 8 {
		t.Errorf("%d GPUs", len(a.gpus))
	}
}

// Without --host none of its files is read.
func TestReadWithoutHost(t *testing.T) {
	h, p := hostOf(readOnce(t, newNode(t, "dgx-a100-mig"), "--tier", "0").lines)
	if h != nil || p.PCI[0].Slot.IsSet() || p.PCI[0].AER != nil || p.Caps != nil || p.CapMinors != nil {
		t.Errorf("host %+v, presence %+v", h, p)
	}
}

// A driver that hangs does not keep back who hangs in it.
func TestHostArrivesWhereTheDriverHangs(t *testing.T) {
	n := newNode(t, "dgx-h100", "host.stuck.2000=job=77", "call.nvmlInit_v2=hang")
	if h := hostWithin(t, n, 5*time.Second); h == nil || len(h.Stuck) != 1 {
		t.Errorf("host %+v", h)
	}
}

// hostWithin reads lines until the host's, and ends the probe.
func hostWithin(t *testing.T, n *sim.Node, limit time.Duration) *gpu.Host {
	t.Helper()
	cmd := probe(t, "read", "--root", n.Root(), "--nvml", n.Library(), "--host")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer end.Stop()
	b := json.NewDecoder(io.LimitReader(out, 1<<20))
	var found *gpu.Host
	for found == nil {
		var l driver.Line
		if err := b.Decode(&l); err != nil {
			break
		}
		found = l.Host
	}
	_ = cmd.Process.Kill()
	if err := cmd.Wait(); err != nil && !strings.Contains(err.Error(), "killed") {
		t.Errorf("the probe: %v", err)
	}
	return found
}
