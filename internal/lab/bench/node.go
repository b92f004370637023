package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gpuhooks/internal/sim"
	"gpuhooks/internal/slurm"
)

// node is one simulated node with the hooks' configuration: no Slurm is needed
// to measure what the programs themselves take.
type node struct {
	dir string
	bin string
	sim *sim.Node
	job int // the next job's number
}

// newNode makes a node of a profile below dir.
func newNode(dir, bin, profile string) (*node, error) {
	s, err := sim.NewNode(filepath.Join(dir, "gpus"), profile)
	if err != nil {
		return nil, err
	}
	n := &node{dir: dir, bin: bin, sim: s, job: 1000}
	return n, n.configure(true)
}

// path is a file or directory of the node.
func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

// configure writes gpuhooks.toml and a gres.conf that lists eight GPUs in NVML
// order.
func (n *node) configure(sampler bool) error {
	gres, err := n.gres()
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`mode = "observe"
[paths]
root = %q
run = %q
spool = %q
state = %q
fallback = %q
probe = %q
nvml = %q
baseline = %q
[slurm]
conf = %q
gres_conf = %q
nodename = "bench"
[sampler]
enabled = %t
tick = "1s"
`, n.sim.Root(), n.path("run"), n.path("spool"), n.path("state"), n.path("unsent"),
		filepath.Join(n.bin, "gpu-probe"), n.sim.Library(), n.path("baseline.toml"), n.path("slurm.conf"), n.path("gres.conf"), sampler)
	for name, text := range map[string]string{
		"gpuhooks.toml": text,
		"gres.conf":     gres,
		"slurm.conf":    "ClusterName=bench\nGresTypes=gpu\nNodeName=bench Gres=gpu:8 CPUs=2\nNodeName=cpu CPUs=2\n",
	} {
		if err := os.WriteFile(n.path(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// inventory is what the probe tells of the node.
func (n *node) inventory() (inv slurm.Inventory, err error) {
	out, err := exec.Command(filepath.Join(n.bin, "gpu-probe"), "read", "--inventory",
		"--root", n.sim.Root(), "--nvml", n.sim.Library()).Output()
	if err == nil {
		err = json.Unmarshal(out, &inv)
	}
	if err != nil {
		err = fmt.Errorf("gpu-probe read --inventory: %w", err)
	}
	return inv, err
}

// gres lists the device nodes in the order of NVML's indices.
func (n *node) gres() (string, error) {
	inv, err := n.inventory()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, g := range inv.GPUs {
		minor, ok := g.Minor.Get()
		if !ok {
			return "", fmt.Errorf("GPU %s has no minor number", g.UUID)
		}
		fmt.Fprintf(&b, "NodeName=bench Name=gpu File=%s/dev/nvidia%d\n", n.sim.Root(), minor)
	}
	return b.String(), nil
}

// env is what slurmd gives a hook for a job on these GPUs ("" for none).
func (n *node) env(job int, gpus string, context string) []string {
	env := []string{
		"SLURMD_NODENAME=bench", "SLURM_CLUSTER_NAME=bench", "SLURM_CONF=" + n.path("slurm.conf"),
		fmt.Sprintf("SLURM_JOB_ID=%d", job), fmt.Sprintf("SLURM_JOBID=%d", job),
		"SLURM_JOB_UID=1000", "SLURM_JOB_GID=1000", "SLURM_JOB_USER=user", "SLURM_UID=1000",
		"SLURM_JOB_PARTITION=gpu", "SLURM_NODELIST=bench", "SLURM_JOB_NUM_NODES=1",
		"SLURM_JOB_RESTART_COUNT=0", "SLURM_SCRIPT_CONTEXT=" + context,
	}
	if gpus != "" {
		env = append(env, "SLURM_JOB_GPUS="+gpus, "CUDA_VISIBLE_DEVICES="+gpus)
	}
	return env
}

// run starts one of the programs and waits for it.
func (n *node) run(env []string, program string, args ...string) (time.Duration, string, error) {
	cmd := exec.Command(filepath.Join(n.bin, program), append([]string{"--config", n.path("gpuhooks.toml")}, args...)...)
	cmd.Env = env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start)
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(out.String()))
	}
	return took, out.String(), err
}

// alone is prolog for a measurement: what earlier ones left is removed, so that
// each looks for itself and none finds more live runs than the one before.
func (n *node) alone(gpus string) (took time.Duration, err error) {
	if err := os.RemoveAll(n.path("run/runs")); err != nil {
		return 0, err
	}
	_, took, err = n.prolog(gpus)
	return took, err
}

// prolog starts a job on the GPUs and returns its number. A reading that an
// earlier prolog left is removed: it could be shared.
func (n *node) prolog(gpus string) (job int, took time.Duration, err error) {
	n.job++
	os.Remove(n.path("run/reading.json"))
	took, _, err = n.run(n.env(n.job, gpus, "prolog_slurmd"), "gpu-prolog")
	return n.job, took, err
}

// epilog ends a job.
func (n *node) epilog(job int, gpus string) (time.Duration, error) {
	took, _, err := n.run(append(n.env(job, gpus, "epilog_slurmd"), "SLURM_JOB_EXIT_CODE2=0:0"), "gpu-epilog")
	return took, err
}

// repeat runs f n times and returns the sorted times.
func repeat(n int, f func() (time.Duration, error)) ([]time.Duration, error) {
	var all []time.Duration
	for range n {
		d, err := f()
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	slices.Sort(all)
	return all, nil
}

// p returns the quantile q of sorted times.
func p(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
