package check

import (
	"fmt"
	"slices"
	"strings"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/xid"
)

var gpuLost = Check{
	Name: "gpu-lost", Code: "LOST", Tier: 0, Class: Hardware,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Is every GPU still reachable: by NVML, and without XID 79 in the kernel log?",
		Why:  "A GPU that has fallen off the bus does not come back; every job on it fails, and others may hang beside it.",
		Cure: "Reboot; if it comes again, reseat the card and look at power and PCIe errors. Then gpu-healthcheck, then resume the node.",
	},
	Run: func(in Input) []Finding {
		var lost []loss
		for i := range in.Node.GPUs {
			if g := &in.Node.GPUs[i]; g.Lost() {
				lost = addLoss(lost, &g.Identity, "NVML answers GPU_IS_LOST")
			}
		}
		for _, e := range in.Kernel.Events {
			if fallen(e) && !saidByNumber(in.Kernel.Events, e) {
				lost = addLoss(lost, eventGPU(in, e), eventText(e))
			}
		}
		if in.Answered() {
			for _, p := range in.Node.Presence.Proc {
				if in.Node.Find(p.UUID) == nil && bound(in.Node.Presence.PCI, p.Address) {
					lost = addLoss(lost, procIdentity(p), "the kernel has it, NVML does not list it")
				}
			}
		}
		if len(lost) == 0 && len(in.Node.GPUs) == 0 && !in.Answered() {
			return []Finding{{Outcome: Skip, Text: "no GPU was read"}}
		}
		var out []Finding
		for _, l := range lost {
			if l.gpu == nil || l.gpu.UUID == "" || in.Judged(l.gpu.UUID) {
				out = append(out, Finding{Outcome: Fail, GPU: l.gpu, Text: "fell off the bus: " + strings.Join(l.why, "; ")})
			}
		}
		return out
	},
}

// loss is one lost GPU with everything that says so. gpu is nil for a line of
// the kernel log that names no card.
type loss struct {
	gpu *gpu.Identity
	why []string
}

func addLoss(all []loss, id *gpu.Identity, why string) []loss {
	i := slices.IndexFunc(all, func(l loss) bool {
		return l.gpu == nil && id == nil || l.gpu != nil && id != nil && l.gpu.PCI == id.PCI
	})
	if i < 0 {
		return append(all, loss{id, []string{why}})
	}
	if !slices.Contains(all[i].why, why) {
		all[i].why = append(all[i].why, why)
	}
	return all
}

// fallen says that an event means a lost GPU: XID 79, with or without number.
func fallen(e xid.Event) bool {
	return e.Kind == xid.KindFallen || e.Kind == xid.KindXID && e.Code == 79
}

// saidByNumber says that an event without a number has an XID 79 beside it.
func saidByNumber(events []xid.Event, e xid.Event) bool {
	return e.Kind == xid.KindFallen && slices.ContainsFunc(events, func(o xid.Event) bool {
		return o.Kind == xid.KindXID && o.Code == 79 && o.PCI == e.PCI
	})
}

// bound says whether the kernel's nvidia driver holds the device: a card handed
// to a virtual machine (vfio-pci) is not lost. Where the bus could not be read,
// /proc's word counts.
func bound(devices []gpu.PCIDevice, address string) bool {
	for _, d := range devices {
		if d.Address == address {
			return d.Driver == "nvidia"
		}
	}
	return len(devices) == 0
}

// eventGPU finds the card that an event is about by UUID, then by PCI address;
// nil when the event names none. A card that nobody lists is known by address.
func eventGPU(in Input, e xid.Event) *gpu.Identity {
	if e.UUID == "" && e.PCI == "" {
		return nil
	}
	for i := range in.Node.GPUs {
		if g := &in.Node.GPUs[i]; g.UUID == e.UUID && e.UUID != "" || g.PCI == e.PCI && e.PCI != "" {
			return &g.Identity
		}
	}
	for _, p := range in.Node.Presence.Proc {
		if p.UUID == e.UUID && e.UUID != "" || p.Address == e.PCI && e.PCI != "" {
			return procIdentity(p)
		}
	}
	return &gpu.Identity{Index: -1, UUID: e.UUID, PCI: e.PCI}
}

// eventText names an event as a person would look for it in the log.
func eventText(e xid.Event) string {
	s := string(e.Kind)
	switch e.Kind {
	case xid.KindXID:
		s = fmt.Sprintf("XID %d", e.Code)
	case xid.KindSXID:
		s = fmt.Sprintf("SXid %d", e.Code)
	case xid.KindFallen:
		s = "\"fallen off the bus\""
	}
	s += " in the kernel log"
	if !e.Until.IsZero() {
		s += " at " + e.Until.UTC().Format("2006-01-02T15:04:05Z")
	}
	if e.Count > 1 {
		s += fmt.Sprintf(" (%d times)", e.Count)
	}
	return s
}
