package cli

import (
	"fmt"
	"runtime/debug"
)

// version is set by the linker for builds without version control:
//
//	-ldflags "-X gpuhooks/internal/cli.version=1.2.3"
var version string

// Version is the program's version: the linker's, else what Go derived from the
// tag or commit it was built at.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return fromBuildInfo(info)
}

func fromBuildInfo(info *debug.BuildInfo) string {
	v := info.Main.Version
	if v != "" && v != "(devel)" {
		return v // since Go 1.24 from the tag, with +dirty where files were changed
	}
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	rev := set["vcs.revision"]
	if rev == "" {
		return "devel"
	}
	v = fmt.Sprintf("devel-%.12s", rev)
	if set["vcs.modified"] == "true" {
		v += "+dirty"
	}
	return v
}
