package slurmconf

import (
	"slices"
	"strings"
	"testing"
)

func TestHostListExpand(t *testing.T) {
	tests := []struct {
		in   string
		want string // joined by blanks
		ok   bool
	}{
		{"n1", "n1", true},
		{"n[1-3,7]", "n1 n2 n3 n7", true},
		{"n[08-11]", "n08 n09 n10 n11", true},
		{"n[1-1]", "n1", true},
		{"a,b,,c,", "a b c", true},
		{"c-r3i[4-5]n[0-1],login", "c-r3i4n0 c-r3i4n1 c-r3i5n0 c-r3i5n1 login", true},
		{"n[1-2]-ib", "n1-ib n2-ib", true},
		{"/dev/nvidia[3,2,1,0]", "/dev/nvidia3 /dev/nvidia2 /dev/nvidia1 /dev/nvidia0", true},
		{"/dev/dri/renderD[128,136]", "/dev/dri/renderD128 /dev/dri/renderD136", true},
		{"/dev/nvidia0,/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia0 /dev/nvidia-caps/nvidia-cap12", true},
		{"", "", true},
		{"n[1-", "", false},
		{"n1]", "", false},
		{"n[[1]]", "", false},
		{"n[]", "", false},
		{"n[3-1]", "", false},
		{"n[a-b]", "", false},
		{"n[0-65536]", "", false},
		{"n[0-999][0-999]", "", false},
		{"n[1-99999999999999999999]", "", false},
		{strings.Repeat("[1-2]", 9), "", false},
	}
	for _, tt := range tests {
		h, err := ParseHostList(tt.in)
		if (err == nil) != tt.ok {
			t.Errorf("ParseHostList(%q): error %v, want ok %v", tt.in, err, tt.ok)
			continue
		}
		if got := strings.Join(h.Expand(), " "); got != tt.want {
			t.Errorf("%q expands to %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestHostListHas(t *testing.T) {
	tests := []struct {
		list, name string
		want       bool
	}{
		{"n[1-3,7]", "n3", true},
		{"n[1-3,7]", "n4", false},
		{"n[1-3,7]", "n03", false},
		{"n[001-128]", "n064", true},
		{"n[001-128]", "n64", false},
		{"n[8-11]", "n10", true},
		{"c-r[6-10]i[0-7]n[0-8]", "c-r10i7n8", true},
		{"c-r[6-10]i[0-7]n[0-8]", "c-r11i7n8", false},
		{"n[1-9][1-9]", "n12", true},
		{"n[1-12][1-9]", "n123", true},
		{"gpu1", "gpu10", false},
		{"", "", false},
	}
	for _, tt := range tests {
		h, err := ParseHostList(tt.list)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Has(tt.name); got != tt.want {
			t.Errorf("%q has %q: %v, want %v", tt.list, tt.name, got, tt.want)
		}
	}
}

func FuzzHostList(f *testing.F) {
	for _, s := range []string{"n[1-3,7]", "c-r3i[4-7]n[0-8],c-ia[801-831]", "n[001-010]-ib", "a,,b,", "n[", "]", "[1-2][3-4]", "/dev/nvidia[0-7]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHostList(s)
		if err != nil {
			return
		}
		names := h.Expand()
		if len(names) != h.Len() || len(names) > maxHosts {
			t.Fatalf("%q: %d names, Len %d", s, len(names), h.Len())
		}
		for _, n := range names[:min(len(names), 50)] {
			if !h.Has(n) {
				t.Fatalf("%q expands to %q but does not have it", s, n)
			}
		}
		if slices.Contains(names, "") {
			t.Fatalf("%q names an empty host", s)
		}
	})
}
