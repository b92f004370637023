package slurmconf

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Severity says how much an Advice matters.
type Severity string

// The severities.
const (
	SevereError   Severity = "error"   // hooks do not work, or endanger jobs
	SevereWarning Severity = "warning" // works, at a price in some case
	SevereInfo    Severity = "info"    // good to know
)

// Advice is one thing that Slurm's configuration means for the hooks.
type Advice struct {
	Severity Severity `json:"severity"`
	Key      string   `json:"key"`             // the parameter of slurm.conf or gres.conf
	Where    string   `json:"where,omitempty"` // file:line; "" where the parameter is not set
	What     string   `json:"what"`
	Cause    string   `json:"cause"`
	Cure     string   `json:"cure"`
}

// Budgets are the times that the hooks may take, from our configuration.
type Budgets struct {
	Prolog      time.Duration
	Epilog      time.Duration
	HealthCheck time.Duration
}

// DefaultBudgets are those of DESIGN §6.
var DefaultBudgets = Budgets{Prolog: 7 * time.Second, Epilog: 2500 * time.Millisecond, HealthCheck: 20 * time.Second}

// Facts are what must be known beside slurm.conf.
type Facts struct {
	Node       string
	Version    Version // of Slurm; unknown versions get the advice of all
	ConfPath   string  // the slurm.conf that slurmd uses
	Configless bool    // ConfPath is slurmd's cache: see Locate
	HealthConf string  // slurm.conf as our configuration gives it to a health check; "" when it names none that exists
	Gres       NodeGres
	GresError  string             // "" when gres.conf could be read or there is none
	Remembered bool               // the device list of slurmd's start is remembered, where AutoDetect is on
	SlurmdG    bool               // slurmd's program is there, so that the health check can ask it for that list
	MIG        bool               // a GPU of this node is cut into instances
	Commands   map[string]bool    // scontrol, sinfo, squeue, sacct: whether the configured path can be executed
	Programs   map[string]Program // by the value of Prolog=, Epilog=, HealthCheckProgram=
	Budgets    Budgets
}

// rule is one question to a configuration.
type rule func(Conf, Facts) []Advice

// rules lists all of them, in the order in which a reader wants the answers.
func rules() []rule {
	return []rule{
		adviseHooks, advisePrograms, advisePrologFlags, adviseRunInJob, adviseRequeue, adviseCredential,
		adviseScriptTimeouts, adviseMessageTimeout,
		adviseHealthCheck, adviseHealthConf, adviseCommands,
		adviseConfigless, adviseGres, adviseAutoDetect, adviseAccounting, adviseCgroups,
	}
}

// Diagnose says what in a Slurm configuration would make the hooks useless or
// dangerous, each with cause and cure; the worst first. It is pure.
func Diagnose(c Conf, f Facts) []Advice {
	var out []Advice
	for _, r := range rules() {
		out = append(out, r(c, f)...)
	}
	rank := map[Severity]int{SevereError: 0, SevereWarning: 1, SevereInfo: 2}
	sort.SliceStable(out, func(i, j int) bool { return rank[out[i].Severity] < rank[out[j].Severity] })
	return out
}

// where is the place of a key, for an Advice.
func (c Conf) where(key string) string {
	s, ok := c.Get(key)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}

// list returns the items of a comma list, lower case.
func (c Conf) list(key string) []string {
	s, _ := c.Get(key)
	return strings.FieldsFunc(strings.ToLower(s.Value), func(r rune) bool { return r == ',' || r == ' ' })
}

// value is the value of a key, or def where it is not set.
func (c Conf) value(key, def string) string {
	if s, ok := c.Get(key); ok {
		return s.Value
	}
	return def
}

// seconds reads a time in seconds. known is false where the key is not set or
// means "no limit".
func (c Conf) seconds(key string) (d time.Duration, known bool) {
	s, ok := c.Get(key)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(s.Value, 10, 32)
	if err != nil || n < 0 || n >= 65534 {
		return 0, false
	}
	return time.Duration(n) * time.Second, true
}

// before says whether Slurm may be older than the release: an unknown version
// may be anything.
func (f Facts) before(major, minor, micro int) bool { return !f.Version.AtLeast(major, minor, micro) }

// since says whether Slurm may be that release or later.
func (f Facts) since(major, minor, micro int) bool {
	return !f.Version.Known() || f.Version.AtLeast(major, minor, micro)
}
