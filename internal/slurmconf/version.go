package slurmconf

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a Slurm release: 23.02.7. The zero Version is unknown.
type Version struct{ Major, Minor, Micro int }

// ParseVersion finds a release in text such as "slurm-wlm 22.05.8",
// "23.02.6-1" or "24.11.0-0rc1". ok is false when there is none.
func ParseVersion(s string) (v Version, ok bool) {
	words := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == 'v' || r == '-' })
	for _, w := range words {
		major, rest, _ := strings.Cut(w, ".")
		minor, micro, _ := strings.Cut(rest, ".")
		if len(digits(major)) != 2 || len(major) != 2 || len(digits(minor)) < 2 {
			continue
		}
		v.Major = number(major)
		v.Minor = number(minor[:2])
		if len(digits(minor)) == 2 && len(minor) == 2 && len(digits(micro)) <= 3 {
			v.Micro = number(digits(micro))
		}
		return v, true
	}
	return Version{}, false
}

// digits is the leading digits of s.
func digits(s string) string {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i]
}

// number reads decimal digits; "" is 0.
func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// Known says whether v is a release at all.
func (v Version) Known() bool { return v != Version{} }

// AtLeast says whether v is that release or a later one; an unknown Version is
// at least nothing.
func (v Version) AtLeast(major, minor, micro int) bool {
	if v.Major != major {
		return v.Major > major
	}
	if v.Minor != minor {
		return v.Minor > minor
	}
	return v.Micro >= micro
}

// String is "23.02.7", or "unknown".
func (v Version) String() string {
	if !v.Known() {
		return "unknown"
	}
	return fmt.Sprintf("%02d.%02d.%d", v.Major, v.Minor, v.Micro)
}
