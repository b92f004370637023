package xid

import "strings"

// message looks at what the driver says without an XID. A message may be one
// record with line ends in it, or a record for each line.
func (p *Parser) message(s string) (Event, bool) {
	body := strings.TrimPrefix(s, "NVRM: ")
	began := p.lost
	if p.ttl--; p.ttl <= 0 {
		p.lost = lostCard{}
	}
	switch {
	case strings.HasPrefix(body, "API mismatch: "):
		return Event{Kind: KindMismatch, Text: joinLines(body)}, true
	case strings.Contains(body, "fallen off the bus"):
		p.lost = lostCard{}
		pci, printed := findAddress(body)
		if pci == "" {
			pci, printed = began.pci, began.printed
		}
		p.printed.PCI = printed
		return Event{Kind: KindFallen, PCI: pci, Text: joinLines(body)}, true
	case strings.HasPrefix(body, "The NVIDIA GPU "):
		p.lost.pci, p.lost.printed = findAddress(body)
		p.ttl = 4
	case aboutGSP(body):
		e := Event{Kind: KindGSP, Text: joinLines(body)}
		e.PCI, p.printed.PCI = findAddress(body)
		return e, true
	}
	return Event{}, false
}

// joinLines makes one line of a message of several, each with the driver's mark.
func joinLines(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "NVRM:"))
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
	return b.String()
}

// findAddress returns the first PCI address among the words, in NVML's form and
// as it is printed. A pair of numbers
// needs its function digit to be one, lest a time of day is.
func findAddress(s string) (pci, printed string) {
	for _, word := range strings.Fields(s) {
		word = strings.Trim(word, ",()[]")
		word = strings.TrimSuffix(word, ":")
		if strings.Count(word, ":") < 2 && !strings.Contains(word, ".") {
			continue
		}
		if pci, printed = address(word); pci != "" {
			return pci, printed
		}
	}
	return "", ""
}

// aboutGSP says whether the driver complains about the GPU's system processor.
// Assertions name source files, which proves nothing.
func aboutGSP(s string) bool {
	if strings.Contains(s, "nvAssert") || strings.Contains(s, "nvCheck") {
		return false
	}
	for _, word := range []string{"GSP", "_kgsp", "kgspRpc", "_issueRpc", "rpcSendMessage", "rpcRecvPoll"} {
		if strings.Contains(s, word) {
			return true
		}
	}
	return false
}

// gspStopped says whether the text is that of an XID 120, printed without it.
func gspStopped(s string) bool {
	for _, words := range []string{"GSP task watchdog timeout", "GSP task exception", "GSP task panic"} {
		if strings.HasPrefix(s, words) {
			return true
		}
	}
	return false
}
