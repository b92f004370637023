package slurmconf

import (
	"fmt"
	"regexp"
	"strconv"
)

// Version is a Slurm release: 23.02.7. The zero Version is unknown.
type Version struct{ Major, Minor, Micro int }

var versionPattern = regexp.MustCompile(`(?:^|[ v-])(\d{2})\.(\d{2})(?:\.(\d{1,3}))?`)

// ParseVersion finds a release in text such as "slurm-wlm 22.05.8",
// "23.02.6-1" or "24.11.0-0rc1". ok is false when there is none.
func ParseVersion(s string) (v Version, ok bool) {
	m := versionPattern.FindStringSubmatch(s)
	if m == nil {
		return v, false
	}
	v.Major, _ = strconv.Atoi(m[1])
	v.Minor, _ = strconv.Atoi(m[2])
	v.Micro, _ = strconv.Atoi(m[3])
	return v, true
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
