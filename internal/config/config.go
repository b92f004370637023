// Package config is the whole of gpuhooks.toml: Default, Load, Validate, plain
// values. The programs run as root and trust this file only because root owns
// it; nothing in it can be set by a job.
package config

import (
	"fmt"
	"time"
)

// Config is gpuhooks.toml. Zero values never mean "default": Default fills all.
type Config struct {
	Mode        Mode             `toml:"mode"`
	Paths       Paths            `toml:"paths"`
	Slurm       Slurm            `toml:"slurm"`
	Prolog      Hook             `toml:"prolog"`
	Epilog      Hook             `toml:"epilog"`
	HealthCheck Hook             `toml:"healthcheck"`
	Sampler     Sampler          `toml:"sampler"`
	Drain       Drain            `toml:"drain"`
	Processes   Processes        `toml:"processes"`
	Limits      Limits           `toml:"limits"`
	Export      Export           `toml:"export"`
	Checks      map[string]Check `toml:"checks"`
}

// Mode says whether a verdict has consequences.
type Mode string

// The modes.
const (
	Observe Mode = "observe" // log and record "would drain", exit 0
	Enforce Mode = "enforce"
)

// Paths are where things are. Root is the directory under which /proc, /sys and
// /dev of the GPUs are read: "/" on a real node.
type Paths struct {
	Root     string `toml:"root"`
	Run      string `toml:"run"`      // state of this boot: /run/gpuhooks
	Spool    string `toml:"spool"`    // records on their way: /var/spool/gpuhooks
	State    string `toml:"state"`    // last good configuration, baselines: /var/lib/gpuhooks
	Fallback string `toml:"fallback"` // records when the spool cannot be written: /run/gpuhooks/unsent
	Probe    string `toml:"probe"`    // gpu-probe
	NVML     string `toml:"nvml"`     // the library to load; "" is the linker's libnvidia-ml.so.1
	XID      string `toml:"xid"`      // a site's own XID catalogue, laid over the built-in one; "" is none
	Journal  string `toml:"journal"`  // journalctl, asked for records that the kernel log has overwritten; "" is nobody
	Baseline string `toml:"baseline"` // what this node is expected to have; a missing file expects nothing
}

// Slurm says where Slurm's files and commands are.
type Slurm struct {
	Conf     string `toml:"conf"`      // slurm.conf
	GresConf string `toml:"gres_conf"` // "" is gres.conf beside slurm.conf
	Scontrol string `toml:"scontrol"`
	Sinfo    string `toml:"sinfo"`
	Squeue   string `toml:"squeue"`
	Sacct    string `toml:"sacct"`
	Slurmd   string `toml:"slurmd"`   // asked with -G what it detects, by the health check alone; "" is never
	Version  string `toml:"version"`  // "22.05.8"; "" when unknown: decides the order of a detected list
	NodeName string `toml:"nodename"` // "" is SLURMD_NODENAME, else the short host name
}

// Hook is what one of the three callers may take.
type Hook struct {
	Enabled  bool     `toml:"enabled"`
	Deadline Duration `toml:"deadline"` // for the probe's whole answer
	Boot     Duration `toml:"boot"`     // the same for the first look after boot or driver load
}

// Sampler is the one process that measures while jobs run.
type Sampler struct {
	Enabled bool     `toml:"enabled"`
	Tick    Duration `toml:"tick"`   // aligned to the wall clock
	Start   string   `toml:"start"`  // prolog, systemd
	Series  int      `toml:"series"` // points kept of each thinned series
}

// Drain is how the node is taken out of service, and what holds that back.
type Drain struct {
	Delay         Duration `toml:"delay"`          // random delay up to this before Slurm is asked; all of it passes before the nodes are counted again
	Timeout       Duration `toml:"timeout"`        // delay and all Slurm calls together
	BrakeMin      int      `toml:"brake_min"`      // the brake holds from max(min, fraction × nodes) drained with one code
	BrakeFraction float64  `toml:"brake_fraction"` // 0..1
	BrakeWindow   Duration `toml:"brake_window"`
	Undrain       bool     `toml:"undrain"`
	UndrainRuns   int      `toml:"undrain_runs"` // clean looks in a row
	UndrainHold   Duration `toml:"undrain_hold"`
}

// Processes is about left-over processes on GPUs.
type Processes struct {
	Allow []string `toml:"allow"` // names that may hold a GPU without a job
}

// Limits are from where on what only ever is more or less becomes a finding.
// Rates are since the last look.
type Limits struct {
	CorrectedPerHour   float64  `toml:"corrected_per_hour"`    // corrected ECC errors of one GPU
	RetiredPages       int      `toml:"retired_pages"`         // before Ampere: NVIDIA replaces at 63
	RemappedRows       int      `toml:"remapped_rows"`         // because of uncorrected errors: NVIDIA replaces at 512
	SpareBanks         int      `toml:"spare_banks"`           // memory banks with few or no spare rows left
	ThrottledShare     float64  `toml:"throttled_share"`       // of the time, by heat or power brake, 0..1
	TemperatureMargin  int      `toml:"temperature_margin"`    // °C left to the slowdown threshold
	NVLinkErrorsPerMin float64  `toml:"nvlink_errors_per_min"` // CRC, replay and recovery, of one GPU
	PCIeErrorsPerHour  float64  `toml:"pcie_errors_per_hour"`  // AER correctable, and replays, of one GPU
	PortErrorsPerHour  float64  `toml:"port_errors_per_hour"`  // local link integrity, of one RDMA port
	StuckFor           Duration `toml:"stuck_for"`             // a thread in state D inside the driver, seen twice
	ClockError         Duration `toml:"clock_error"`           // of an unsynchronised clock
	DirFree            int      `toml:"dir_free_mib"`          // of spool and state, MiB
	Siblings           float64  `toml:"siblings"`              // how far one GPU may be off the median of its kind, 0..1
}

// Export is where monitoring finds the health check's verdict.
type Export struct {
	Textfile string `toml:"textfile"` // directory of Prometheus' node_exporter in which gpuhooks.prom is kept; "" is none
	Lines    string `toml:"lines"`    // file that slurm_gpu_health lines are written to, the last look's; "" is none
}

// Check is the policy for one check; empty strings mean the check's default.
type Check struct {
	Prolog      Policy `toml:"prolog"`
	Epilog      Policy `toml:"epilog"`
	HealthCheck Policy `toml:"healthcheck"`
	OnError     Policy `toml:"on_error"` // what "could not look" means
	Mode        Mode   `toml:"mode"`     // of this check alone, whatever the file says for all
}

// Policy is what a failed check leads to.
type Policy string

// The policies. PolicyDefault is the check's own.
const (
	PolicyDefault Policy = ""
	PolicyDrain   Policy = "drain"
	PolicyWarn    Policy = "warn"
	PolicyIgnore  Policy = "ignore"
)

// Duration is a time.Duration written as a string ("30s").
type Duration time.Duration

// D returns the plain duration.
func (d Duration) D() time.Duration { return time.Duration(d) }

// UnmarshalText reads "30s".
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as \"30s\" or \"5m\"", b)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes "30s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// probe is where gpu-probe is installed; `make install` under another prefix
// sets it at link time.
var probe = "/usr/libexec/gpuhooks/gpu-probe"

// Default is what holds without a file.
func Default() Config {
	sec := func(s float64) Duration { return Duration(s * float64(time.Second)) }
	return Config{
		Mode: Observe,
		Paths: Paths{
			Root: "/", Run: "/run/gpuhooks", Spool: "/var/spool/gpuhooks", State: "/var/lib/gpuhooks",
			Fallback: "/run/gpuhooks/unsent", Probe: probe, Journal: "/usr/bin/journalctl", Baseline: "/var/lib/gpuhooks/baseline.toml",
		},
		Slurm: Slurm{
			Conf: "/etc/slurm/slurm.conf", Scontrol: "/usr/bin/scontrol", Sinfo: "/usr/bin/sinfo",
			Squeue: "/usr/bin/squeue", Sacct: "/usr/bin/sacct", Slurmd: "/usr/sbin/slurmd",
		},
		Prolog:      Hook{Enabled: true, Deadline: sec(4), Boot: sec(4)},
		Epilog:      Hook{Enabled: true, Deadline: sec(1), Boot: sec(1)},
		HealthCheck: Hook{Enabled: true, Deadline: sec(4), Boot: sec(15)},
		Sampler:     Sampler{Enabled: true, Tick: sec(5), Start: "prolog", Series: 240},
		Drain: Drain{
			Delay: sec(0.5), Timeout: sec(2.5), BrakeMin: 3, BrakeFraction: 0.05, BrakeWindow: sec(3600),
			UndrainRuns: 3, UndrainHold: sec(600),
		},
		Processes: Processes{Allow: []string{
			"nvidia-persistenced", "nvidia-cuda-mps-server", "nvidia-cuda-mps-control",
			"nv-hostengine", "dcgm-exporter", "dcgmproftester", "Xorg", "gpu-probe", "slurmstepd",
		}},
		Limits: Limits{
			CorrectedPerHour: 1000, RetiredPages: 63, RemappedRows: 512, SpareBanks: 1, ThrottledShare: 0.25, TemperatureMargin: 3,
			NVLinkErrorsPerMin: 100, PCIeErrorsPerHour: 1000, PortErrorsPerHour: 100, StuckFor: sec(30), ClockError: sec(1), DirFree: 16,
			Siblings: 0.1,
		},
		Checks: map[string]Check{},
	}
}
