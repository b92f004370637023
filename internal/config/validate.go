package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// Validate reports every value that cannot be used, all at once.
func (c Config) Validate() error { return c.validate(func(string) string { return "configuration" }) }

// validate does so with where(key) naming the place of a key.
func (c Config) validate(where func(key string) string) error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s: %s", where(key), key, fmt.Sprintf(format, args...)))
	}
	oneOf := func(key, got string, allowed ...string) {
		if !slices.Contains(allowed, got) {
			bad(key, "%q is not one of %s", got, strings.Join(allowed, ", "))
		}
	}
	oneOf("mode", string(c.Mode), string(Observe), string(Enforce))
	oneOf("sampler.start", c.Sampler.Start, "prolog", "systemd")

	for key, path := range map[string]string{
		"paths.root": c.Paths.Root, "paths.run": c.Paths.Run, "paths.spool": c.Paths.Spool,
		"paths.state": c.Paths.State, "paths.fallback": c.Paths.Fallback, "paths.probe": c.Paths.Probe,
		"slurm.conf": c.Slurm.Conf, "slurm.scontrol": c.Slurm.Scontrol, "slurm.sinfo": c.Slurm.Sinfo,
		"slurm.squeue": c.Slurm.Squeue, "slurm.sacct": c.Slurm.Sacct,
	} {
		if !filepath.IsAbs(path) {
			bad(key, "%q is not an absolute path", path)
		}
	}
	for key, path := range map[string]string{"paths.nvml": c.Paths.NVML, "paths.xid": c.Paths.XID, "paths.journal": c.Paths.Journal, "paths.baseline": c.Paths.Baseline, "export.textfile": c.Export.Textfile, "export.lines": c.Export.Lines, "slurm.gres_conf": c.Slurm.GresConf, "slurm.slurmd": c.Slurm.Slurmd} {
		if path != "" && !filepath.IsAbs(path) {
			bad(key, "%q is not an absolute path", path)
		}
	}

	// The budgets keep a hook inside what Slurm and its users bear (DESIGN §6):
	// a prolog answers in 7 s, an epilog in 2.5 s, a health check in 20 s.
	within := func(key string, d Duration, lo, hi time.Duration) {
		if d.D() < lo || d.D() > hi {
			bad(key, "%s is not between %s and %s", d.D(), lo, hi)
		}
	}
	within("prolog.deadline", c.Prolog.Deadline, 100*time.Millisecond, 60*time.Second)
	within("prolog.boot", c.Prolog.Boot, 100*time.Millisecond, 60*time.Second)
	within("epilog.deadline", c.Epilog.Deadline, 100*time.Millisecond, 2*time.Second)
	within("epilog.boot", c.Epilog.Boot, 100*time.Millisecond, 2*time.Second)
	within("healthcheck.deadline", c.HealthCheck.Deadline, 100*time.Millisecond, 60*time.Second)
	within("healthcheck.boot", c.HealthCheck.Boot, 100*time.Millisecond, 60*time.Second)
	within("sampler.tick", c.Sampler.Tick, 200*time.Millisecond, time.Minute)
	within("drain.delay", c.Drain.Delay, 0, 5*time.Second)
	within("drain.timeout", c.Drain.Timeout, 500*time.Millisecond, 30*time.Second)
	within("drain.brake_window", c.Drain.BrakeWindow, time.Minute, 30*24*time.Hour)
	within("drain.undrain_hold", c.Drain.UndrainHold, 0, 30*24*time.Hour)

	if c.Sampler.Series < 0 || c.Sampler.Series > 10000 {
		bad("sampler.series", "%d is not between 0 and 10000", c.Sampler.Series)
	}
	if c.Drain.BrakeMin < 1 {
		bad("drain.brake_min", "%d is less than 1", c.Drain.BrakeMin)
	}
	if !(c.Drain.BrakeFraction >= 0 && c.Drain.BrakeFraction <= 1) { // not a number is neither
		bad("drain.brake_fraction", "%g is not between 0 and 1", c.Drain.BrakeFraction)
	}
	if c.Drain.UndrainRuns < 1 {
		bad("drain.undrain_runs", "%d is less than 1", c.Drain.UndrainRuns)
	}
	for key, v := range map[string]float64{
		"corrected_per_hour": c.Limits.CorrectedPerHour, "retired_pages": float64(c.Limits.RetiredPages), "remapped_rows": float64(c.Limits.RemappedRows),
		"spare_banks": float64(c.Limits.SpareBanks), "nvlink_errors_per_min": c.Limits.NVLinkErrorsPerMin,
		"pcie_errors_per_hour": c.Limits.PCIeErrorsPerHour, "port_errors_per_hour": c.Limits.PortErrorsPerHour, "dir_free_mib": float64(c.Limits.DirFree),
	} {
		if !(v >= 0) {
			bad("limits."+key, "%g is negative", v)
		}
	}
	for key, v := range map[string]float64{"throttled_share": c.Limits.ThrottledShare, "siblings": c.Limits.Siblings} {
		if !(v > 0 && v <= 1) {
			bad("limits."+key, "%g is not between 0 and 1", v)
		}
	}
	if c.Limits.TemperatureMargin < 0 || c.Limits.TemperatureMargin > 50 {
		bad("limits.temperature_margin", "%d is not between 0 and 50", c.Limits.TemperatureMargin)
	}
	within("limits.stuck_for", c.Limits.StuckFor, time.Second, time.Hour)
	within("limits.clock_error", c.Limits.ClockError, time.Millisecond, time.Hour)
	for name, k := range c.Checks {
		for key, p := range map[string]Policy{
			"prolog": k.Prolog, "epilog": k.Epilog, "healthcheck": k.HealthCheck, "on_error": k.OnError,
		} {
			if p != PolicyDefault {
				oneOf("checks."+name+"."+key, string(p), string(PolicyDrain), string(PolicyWarn), string(PolicyIgnore))
			}
		}
		if k.Mode != "" {
			oneOf("checks."+name+".mode", string(k.Mode), string(Observe), string(Enforce))
		}
	}
	sort.Slice(errs, func(i, j int) bool { return errs[i].Error() < errs[j].Error() })
	return errors.Join(errs...)
}

// UnknownChecks says which names under [checks] are not in known: check names
// live in package check, which this package does not know. path is the file that
// the configuration came from, for the line.
func (c Config) UnknownChecks(path string, known []string) []error {
	var out []error
	for _, name := range slices.Sorted(maps.Keys(c.Checks)) {
		if !slices.Contains(known, name) {
			text, err := readText(path)
			if err != nil {
				text = "" // the file is named without the line
			}
			out = append(out, fmt.Errorf("%s: unknown check %q (allowed here: %s)", place(path, text, toml.Key{"checks", name}), name, strings.Join(known, ", ")))
		}
	}
	return out
}
