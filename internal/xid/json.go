package xid

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"gpuhooks/internal/host"
)

// entry is what log lines in JSON are known to hold: the journal's
// (journalctl -o json), a container's ("log"), an agent's ("message", "details").
type entry struct {
	Journal    field  `json:"MESSAGE"`
	Transport  field  `json:"_TRANSPORT"`
	Identifier field  `json:"SYSLOG_IDENTIFIER"`
	Facility   field  `json:"SYSLOG_FACILITY"`
	Realtime   field  `json:"__REALTIME_TIMESTAMP"`
	Container  field  `json:"log"`
	Message    field  `json:"message"`
	Details    detail `json:"details"`
	Time       field  `json:"time"`
	Stamp      field  `json:"ts"`
	At         field  `json:"timestamp"`
}

type detail struct {
	Message field `json:"message"`
}

// UnmarshalJSON takes what is no object for an empty one.
func (d *detail) UnmarshalJSON(b []byte) error {
	var plain struct {
		Message field `json:"message"`
	}
	if json.Unmarshal(b, &plain) == nil {
		d.Message = plain.Message
	}
	return nil
}

// field is a string. The journal writes one that is not UTF-8 as its bytes, and
// one that was given twice as a list; a key of some other tool may hold anything.
type field string

// UnmarshalJSON never fails: what is no text is "".
func (f *field) UnmarshalJSON(b []byte) error {
	var s string
	var raw []int
	switch {
	case json.Unmarshal(b, &s) == nil:
		*f = field(s)
	case json.Unmarshal(b, &raw) == nil:
		text := make([]byte, len(raw))
		for i, n := range raw {
			text[i] = byte(n)
		}
		*f = field(text)
	default:
		*f = field(strings.Trim(string(b), "[]{}")) // a number stays one
	}
	return nil
}

// jsonText takes the message out of a JSON object. A journal entry must come
// from the kernel: a program that writes to /dev/kmsg cannot have its facility.
func jsonText(s string) (message, stamp string, ok bool) {
	var j entry
	if json.Unmarshal([]byte(s), &j) != nil {
		return "", "", false
	}
	if j.Transport != "" && j.Transport != "kernel" || j.Identifier != "" && j.Identifier != "kernel" ||
		j.Facility != "" && j.Facility != "0" {
		return "", "", false
	}
	stamp = firstOf(string(j.Time), firstOf(string(j.Stamp), string(j.At)))
	if usec, err := strconv.ParseInt(string(j.Realtime), 10, 64); err == nil {
		stamp = time.UnixMicro(usec).UTC().Format("2006-01-02T15:04:05Z")
	}
	for _, m := range []field{j.Journal, j.Container, j.Message, j.Details.Message} {
		if m != "" {
			return string(m), clean(stamp), true
		}
	}
	return "", "", false
}

// JournalRecord reads an entry of `journalctl -k -o json` as the kernel log's
// record that it was, but for its number. MonotonicUsec is the kernel's own time.
func JournalRecord(line []byte, boot time.Time) (host.KernelRecord, bool) {
	var j struct {
		Message   field `json:"MESSAGE"`
		Transport field `json:"_TRANSPORT"`
		Facility  field `json:"SYSLOG_FACILITY"`
		Source    field `json:"_SOURCE_MONOTONIC_TIMESTAMP"`
	}
	if json.Unmarshal(line, &j) != nil || j.Transport != "" && j.Transport != "kernel" {
		return host.KernelRecord{}, false
	}
	usec, err := strconv.ParseUint(string(j.Source), 10, 62)
	if err != nil {
		return host.KernelRecord{}, false
	}
	r := host.KernelRecord{MonotonicUsec: usec, Time: boot.Add(time.Duration(usec) * time.Microsecond), Text: string(j.Message)}
	if j.Facility != "" && j.Facility != "0" {
		r.Facility = 1 // a program's: it raises nothing
	}
	return r, true
}
