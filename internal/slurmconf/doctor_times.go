package slurmconf

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

const (
	defaultMessageTimeout = 10 * time.Second
	defaultCredExpire     = 120 * time.Second
)

func adviseScriptTimeouts(c Conf, f Facts) []Advice {
	var out []Advice
	both, bothSet := c.seconds("PrologEpilogTimeout")
	for _, h := range []struct {
		key    string
		hook   string
		budget time.Duration
	}{{"PrologTimeout", "Prolog", f.Budgets.Prolog}, {"EpilogTimeout", "Epilog", f.Budgets.Epilog}} {
		if len(c.All(h.hook)) == 0 {
			continue
		}
		key, limit, set := "PrologEpilogTimeout", both, bothSet
		if d, ok := c.seconds(h.key); ok && f.since(25, 5, 0) {
			key, limit, set = h.key, d, true
		}
		switch {
		case !set:
			out = append(out, Advice{Severity: SevereWarning, Key: key, Where: c.where(key), What: "a " + h.hook + " script that hangs holds its job for ever",
				Cause: "there is no time limit for it; a child that keeps the script's output open is enough",
				Cure:  "PrologEpilogTimeout=60"})
		case limit <= h.budget:
			out = append(out, Advice{Severity: SevereError, Key: key, Where: c.where(key), What: fmt.Sprintf("slurmd kills the %s after %v", h.hook, limit),
				Cause: fmt.Sprintf("gpuhooks may take %v; a killed script counts as failed and drains the node without a reason of ours", h.budget),
				Cure:  fmt.Sprintf("%s=%d or more", key, int((2*h.budget+time.Second-1)/time.Second))})
		}
	}
	return out
}

func adviseMessageTimeout(c Conf, f Facts) []Advice {
	limit, set := c.seconds("MessageTimeout")
	if !set {
		limit = defaultMessageTimeout
	}
	hung := max(2*time.Second, limit-2*time.Second)
	if len(c.All("Prolog")) == 0 || hung > f.Budgets.Prolog {
		return nil
	}
	return []Advice{{Severity: SevereWarning, Key: "MessageTimeout", Where: c.where("MessageTimeout"), What: fmt.Sprintf("users may read \"Prolog hung on node\" after %v", hung),
		Cause: fmt.Sprintf("Slurm says so MessageTimeout-2 s after the start, and a prolog may take %v before it answers", f.Budgets.Prolog),
		Cure:  fmt.Sprintf("MessageTimeout=%d or more", int((f.Budgets.Prolog+time.Second-1)/time.Second)+3)}}
}

// adviseCredential: a requeued job waits for its old credential, and a long
// prolog outlives a short one.
func adviseCredential(c Conf, f Facts) []Advice {
	if len(c.All("Prolog")) == 0 {
		return nil
	}
	expire := defaultCredExpire
	v, set := c.Option("AuthInfo", "cred_expire")
	if n, err := strconv.Atoi(v); set && err == nil && n > 0 {
		expire = time.Duration(n) * time.Second
	}
	if expire <= f.Budgets.Prolog {
		return []Advice{{Severity: SevereWarning, Key: "AuthInfo", Where: c.where("AuthInfo"), What: fmt.Sprintf("a job's credential expires after %v", expire),
			Cause: fmt.Sprintf("a prolog may take %v; a step whose credential has expired is refused", f.Budgets.Prolog),
			Cure:  fmt.Sprintf("AuthInfo=…,cred_expire=%d or more", int(4*f.Budgets.Prolog/time.Second))}}
	}
	if expire > time.Minute {
		return []Advice{{Severity: SevereInfo, Key: "AuthInfo", Where: c.where("AuthInfo"), What: fmt.Sprintf("a job whose prolog failed starts again after %v at the earliest", expire+time.Second),
			Cause: "a requeued job waits until its old credential has expired (cred_expire)",
			Cure:  "AuthInfo=…,cred_expire=30, if no prolog of yours takes longer"}}
	}
	return nil
}

func adviseHealthCheck(c Conf, f Facts) []Advice {
	program, ok := c.Get("HealthCheckProgram")
	if !ok || program.Value == "" {
		return []Advice{{Severity: SevereInfo, Key: "HealthCheckProgram", What: "nodes are checked only when a job starts or ends",
			Cause: "HealthCheckProgram= is not set; the first look after a boot, which can take long, is then a prolog's",
			Cure:  "HealthCheckProgram=<a script that runs gpu-healthcheck>, HealthCheckInterval=300, see scripts/"}}
	}
	var out []Advice
	states := c.list("HealthCheckNodeState")
	only := slices.Contains(states, "start_only") || slices.Contains(states, "reboot_only")
	interval, set := c.seconds("HealthCheckInterval")
	at := c.where("HealthCheckInterval")
	switch {
	case (!set || interval == 0) && !only:
		out = append(out, Advice{Severity: SevereError, Key: "HealthCheckInterval", Where: at, What: "HealthCheckProgram never runs",
			Cause: "HealthCheckInterval is 0, which is also the default", Cure: "HealthCheckInterval=300"})
	case set && interval > 0 && interval <= f.Budgets.HealthCheck:
		out = append(out, Advice{Severity: SevereWarning, Key: "HealthCheckInterval", Where: at, What: fmt.Sprintf("health checks can overlap: one every %v", interval),
			Cause: fmt.Sprintf("gpu-healthcheck may take %v, and Slurm does not wait for the one before", f.Budgets.HealthCheck), Cure: "HealthCheckInterval=300"})
	}
	if limit, ok := c.seconds("HealthCheckTimeout"); ok && limit <= f.Budgets.HealthCheck {
		out = append(out, Advice{Severity: SevereError, Key: "HealthCheckTimeout", Where: c.where("HealthCheckTimeout"), What: fmt.Sprintf("slurmd kills the health check after %v", limit),
			Cause: fmt.Sprintf("gpu-healthcheck may take %v", f.Budgets.HealthCheck), Cure: "HealthCheckTimeout=60"})
	}
	switch {
	case only:
		out = append(out, Advice{Severity: SevereWarning, Key: "HealthCheckNodeState", Where: c.where("HealthCheckNodeState"), What: "running nodes are not checked",
			Cause: "START_ONLY and REBOOT_ONLY run the check when slurmd starts", Cure: "HealthCheckNodeState=ANY,CYCLE, or a timer of systemd beside it"})
	case slices.Contains(states, "idle") || slices.Contains(states, "nondrained_idle"):
		if !slices.Contains(states, "mixed") && !slices.Contains(states, "alloc") && !slices.Contains(states, "any") {
			out = append(out, Advice{Severity: SevereInfo, Key: "HealthCheckNodeState", Where: c.where("HealthCheckNodeState"), What: "a node that is always busy is never checked between jobs",
				Cause: "IDLE means that no core is allocated", Cure: "HealthCheckNodeState=ANY,CYCLE: tier 1 disturbs no job"})
		}
	}
	return out
}
