package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gpuhooks/internal/record"
	"gpuhooks/internal/xid"
)

// maxErrors bounds the events on the page; JSON has them all.
const maxErrors = 12

// happening is an event with the record that it is in.
type happening struct {
	record.Event
	rec *record.Record
}

func (j Job) events() []happening {
	var out []happening
	for i := range j.Records {
		for _, e := range j.Records[i].Events {
			out = append(out, happening{e, &j.Records[i]})
		}
	}
	slices.SortStableFunc(out, func(a, b happening) int {
		return a.Time.Or(time.Time{}).Compare(b.Time.Or(time.Time{}))
	})
	return out
}

// what is the event in one line.
func (h happening) what() string {
	var s string
	switch h.Kind {
	case record.KindCheck:
		return "found when the job ended: " + record.Clean(h.Meaning)
	case string(xid.KindXID):
		s = fmt.Sprintf("XID %d", h.Code)
	case string(xid.KindSXID):
		s = fmt.Sprintf("SXid %d (NVSwitch)", h.Code)
	default:
		s = "driver message"
	}
	if h.Count > 1 {
		s += fmt.Sprintf(", %d times", h.Count)
	}
	if h.Process != "" {
		s += ", process " + record.Clean(h.Process)
	}
	return s + ": " + record.Clean(h.Meaning)
}

// todo is what the user of the job should do about it.
func (h happening) todo() string {
	switch {
	case h.Kind == record.KindCheck && h.Cause == record.CauseApp:
		return "Please make sure that the job ends all its processes."
	case h.Kind == record.KindCheck:
		return "The administrators' node check has noticed it, too; nothing for you to do."
	case h.Cause == record.CauseHardware && h.Action == string(xid.ActionRestartApp):
		return "An error of the hardware ended the program; the GPU stays usable. It is not the program's fault: please submit the job again."
	case h.Cause == record.CauseHardware:
		return "This is a matter of hardware or driver, not of the program. Results of this run may be wrong or incomplete: please submit the job again."
	case h.Cause == record.CauseApp:
		return "The program most likely caused this itself; its own output may say where."
	case h.Cause == record.CauseEither:
		return "Usually an error of the program, such as an illegal memory access (compute-sanitizer finds it). If the program is known to be good, please tell the administrators."
	case h.Cause == record.CauseInfo:
		return "A note of the driver; nothing to do."
	}
	return "If the job failed, please tell the administrators."
}

// where names the card in every way in which a person may look for it.
func (j Job) where(h happening) string {
	s := ""
	if len(j.Records) > 1 {
		s = record.Clean(h.rec.Node) + " "
	}
	for i := range h.rec.GPUs {
		g := &h.rec.GPUs[i]
		if g.PCI != h.PCI || g.UUID != h.UUID && h.UUID != "" {
			continue
		}
		s += "GPU " + label(device{g, h.rec})
		if m, ok := g.Minor.Get(); ok {
			s += fmt.Sprintf(", /dev/nvidia%d", m)
		}
		return s + ", " + record.Clean(g.PCI) + ", " + record.Clean(g.UUID)
	}
	if h.PCI == "" {
		return s + "(no GPU named)"
	}
	return s + record.Clean(h.PCI)
}

// counted are the errors that counters show, by GPU, worst first.
func (j Job) counted() []string {
	kinds := []struct{ field, one string }{
		{"ecc_uncorrected_dram_errors", "uncorrected memory error"},
		{"ecc_uncorrected_sram_errors", "uncorrected cache error"},
		{"remapped_uncorrected_rows", "memory row replaced after uncorrected errors"},
		{"pcie_fatal_errors", "fatal PCIe error"},
		{"pcie_nonfatal_errors", "PCIe error that lost a packet"},
		{"nvlink_recovery_errors", "NVLink recovery"},
		{"nvlink_crc_data_errors", "NVLink CRC error in data"},
		{"ecc_corrected_dram_errors", "corrected memory error (harmless)"},
		{"ecc_corrected_sram_errors", "corrected cache error (harmless)"},
		{"remapped_corrected_rows", "memory row replaced after corrected errors (harmless)"},
	}
	var out []string
	for _, d := range j.devices() {
		var parts []string
		for _, k := range kinds {
			n, ok := d.Get(k.field)
			if !ok || n < 1 {
				continue
			}
			text := fmt.Sprintf("%.0f × %s", n, k.one)
			if d.Values[k.field].Has(record.LowerBound) {
				text = "at least " + text
			}
			if d.Values[k.field].Has(record.WholeCard) {
				text += " (of the whole card)"
			}
			parts = append(parts, text)
		}
		if len(parts) > 0 {
			out = append(out, j.name(d)+": "+strings.Join(parts, ", "))
		}
	}
	return out
}
