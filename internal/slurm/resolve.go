package slurm

import (
	"fmt"
	"slices"
	"strings"

	"gpuhooks/internal/slurmconf"
)

// Options are what may be known beside the environment, gres.conf and the
// inventory. The zero Options is "nothing".
type Options struct {
	Slurm      slurmconf.Version    // else Inventory.Slurm counts
	Detected   []slurmconf.Device   // slurmd -G, given by hand: wins over every other list
	Remembered *List                // the list of slurmd's start: counts where AutoDetect is on; nil for none
	NodeGres   []slurmconf.GresItem // the node's Gres= in slurm.conf; nil when not known
}

// Resolve finds the GPUs of a job, by UUID in the end and never by using Slurm's
// numbers as NVML's (DESIGN §4). It is pure, and "cannot-resolve" says nothing
// about the health of a GPU.
func Resolve(j Job, inv Inventory, gres slurmconf.Gres, o Options) Resolution {
	r := resolver{job: j, inv: inv, gpus: inv.nvidia(), o: o, version: o.Slurm}
	if !r.version.Known() {
		r.version, _ = slurmconf.ParseVersion(inv.Slurm)
	}
	node := j.NodeName
	if node == "" {
		node = inv.Node
	}
	r.gres = gres.ForNode(node)
	out := r.resolve()
	if out.GPUs == nil {
		out.GPUs = []GPU{}
	}
	out.Warnings = slices.Compact(out.Warnings)
	return out
}

type resolver struct {
	job     Job
	inv     Inventory
	gpus    []*InventoryGPU
	gres    slurmconf.NodeGres
	o       Options
	version slurmconf.Version
}

func (r *resolver) resolve() Resolution {
	switch r.job.Context {
	case OutsideOfAJob:
		return Resolution{Verdict: NodeMode, Reason: "no SLURM_JOB_ID: this is not a job, the whole node is meant"}
	case PrologCtld, EpilogCtld:
		return cannot("slurmctld's own scripts are not told which GPUs a job has")
	}
	list, warn := r.numberList()
	cuda := cudaTokens(r.job.GPUs.CUDA.Or(""))
	var res Resolution
	switch {
	case slices.ContainsFunc(cuda, isUUID):
		res = r.byTokens(cuda, list)
	case len(tokens(list)) > 0:
		res = r.byNumbers(list)
	case len(cuda) > 0:
		res = r.byOldNumbers(strings.Join(cuda, ","))
	case len(tokens(r.job.GPUs.ROCR.Or(""))) > 0:
		res = cannot("the job's GPUs are another vendor's: only ROCR_VISIBLE_DEVICES is set")
	case len(tokens(r.job.GPUs.Ordinal.Or(""))) > 0:
		res = cannot("only GPU_DEVICE_ORDINAL is set, which does not say what it counts")
	default:
		return Resolution{Verdict: NoGPUs, Reason: "no GPU variable is set: the job has no GPUs on this node"}
	}
	res.Warnings = append(append(warn, res.Warnings...), r.maskWarning(cuda)...)
	res.Sharing = r.sharing()
	res.Shared = res.Sharing == SharedMPS || res.Sharing == SharedShard
	return res
}

func cannot(format string, args ...any) Resolution {
	return Resolution{Verdict: CannotResolve, Reason: fmt.Sprintf(format, args...)}
}

// slurmds says whether the environment is one that slurmd made for a script.
func (r *resolver) slurmds() bool { return r.job.Context == Prolog || r.job.Context == Epilog }

// numberList is SLURM_JOB_GPUS, or inside a step SLURM_STEP_GPUS: a step
// inherits the other from the batch script, perhaps from another node.
func (r *resolver) numberList() (list string, warnings []string) {
	job, step := r.job.GPUs.Job.Or(""), r.job.GPUs.Step.Or("")
	if r.slurmds() || len(tokens(step)) == 0 {
		return job, nil
	}
	if job != "" && !slices.Equal(tokens(job), tokens(step)) {
		warnings = append(warnings, fmt.Sprintf("SLURM_JOB_GPUS=%s differs from SLURM_STEP_GPUS=%s, which counts for this step", job, step))
	}
	return step, warnings
}

// byTokens is rule 1: the environment names devices. Where a device has no
// UUID, Slurm writes its number, whose meaning is in the same place of list.
func (r *resolver) byTokens(cuda []string, list string) Resolution {
	res := Resolution{Verdict: Resolved, Rule: ByUUID}
	index, err := numbers(list)
	paired := err == nil && len(index) == len(cuda)
	var lost []string
	for i, t := range cuda {
		switch found, ok := byUUID(r.gpus, t); {
		case ok:
			res.add(found)
		case isUUID(t):
			lost = append(lost, t)
			res.Missing = append(res.Missing, missingUUID(t))
		case paired:
			one := r.byNumbers(fmt.Sprint(index[i]))
			if one.Verdict != Resolved {
				return one
			}
			res.GPUs = append(res.GPUs, one.GPUs...)
		default:
			return cannot("CUDA_VISIBLE_DEVICES mixes names and numbers, and SLURM_JOB_GPUS does not go with it")
		}
	}
	if len(lost) > 0 {
		c := cannot("%s: not among the %d GPUs that the driver shows on this node", strings.Join(lost, ", "), len(r.gpus))
		c.Missing = res.Missing
		return c
	}
	res.Reason = "CUDA_VISIBLE_DEVICES names them"
	if r.slurmds() && len(index) > 0 {
		res.Warnings = r.crossCheck(res.GPUs, list)
	}
	return res
}

func missingUUID(token string) GPU {
	if hasPrefixFold(token, "MIG-") {
		return GPU{MIG: &MIG{UUID: token}}
	}
	return GPU{UUID: token}
}

// crossCheck says so when SLURM_JOB_GPUS would give other GPUs than the UUIDs:
// then gres.conf or the order is not what this node runs with.
func (r *resolver) crossCheck(found []GPU, list string) []string {
	other := r.byNumbers(list)
	if other.Verdict != Resolved {
		return nil
	}
	for _, g := range other.GPUs {
		if len(other.GPUs) != len(found) || !slices.ContainsFunc(found, g.same) {
			return []string{fmt.Sprintf("SLURM_JOB_GPUS=%s would be other GPUs by rule %s; the UUIDs count", list, other.Rule)}
		}
	}
	return nil
}

// byNumbers is rule 2: places in Slurm's own list.
func (r *resolver) byNumbers(list string) Resolution {
	index, err := numbers(list)
	if err != nil {
		return cannot("SLURM_JOB_GPUS: %v", err)
	}
	if r.version.Known() && !r.version.AtLeast(21, 8, 0) {
		return r.byMinors(index)
	}
	l := listOf(r.gpus, r.gres, r.o, r.version)
	if l.why != "" || len(r.gpus) == 0 {
		return r.withoutList(index, l)
	}
	if n, ok := r.inv.VisibleGPUs.Get(); ok && !r.slurmds() && l.rule == ByGresConf && n > len(l.targets) {
		return cannot("%d GPUs are visible here and gres.conf lists %d: this looks like a container with numbers of its own; ask for the UUID from inside it", n, len(l.targets))
	}
	var picked []target
	for _, i := range index {
		if i >= len(l.targets) {
			return cannot("SLURM_JOB_GPUS has %d, and the list has %d devices (rule %s)", i, len(l.targets), l.rule)
		}
		picked = append(picked, l.targets[i])
	}
	res := r.pick(picked, l.rule)
	if res.Verdict == Resolved && l.source != "" {
		res.Reason += ": " + l.source
	}
	return res
}

// withoutList answers where the order is not known. A job that has every device
// of the node has them in any order.
func (r *resolver) withoutList(index []int, l deviceList) Resolution {
	if len(r.gpus) == 0 {
		c := cannot("Slurm gives the job GPUs %s, and this node shows no NVIDIA GPU%s", join(index), foreignNote(l))
		for _, i := range index {
			if i >= len(l.targets) {
				continue
			}
			if g, ok := l.targets[i].missing(); ok {
				c.Missing = append(c.Missing, g)
			}
		}
		return c
	}
	var all []target
	for _, g := range r.gpus {
		if len(g.MIG) == 0 {
			all = append(all, target{gpu: g})
		}
		all = append(all, instances(g)...)
	}
	n, known := configured(r.o.NodeGres)
	every := len(index) == len(all) && slices.Max(index) < len(all) && (!known || n == int64(len(all)))
	if every && foreignNote(l) == "" {
		return r.pick(all, ByWholeNode)
	}
	return cannot("%s", l.why)
}

func foreignNote(l deviceList) string {
	for _, t := range l.targets {
		if t.foreign {
			return fmt.Sprintf("; gres.conf has %s", t.files)
		}
	}
	return ""
}

// byOldNumbers is for numbers in CUDA_VISIBLE_DEVICES without SLURM_JOB_GPUS:
// only slurmd up to 20.11 made such an environment.
func (r *resolver) byOldNumbers(cuda string) Resolution {
	index, err := numbers(cuda)
	switch {
	case err != nil:
		return cannot("CUDA_VISIBLE_DEVICES: %v", err)
	case !r.slurmds() && !(r.version.Known() && !r.version.AtLeast(21, 8, 0)):
		return r.withoutList(index, deviceList{why: "SLURM_JOB_GPUS is not set, and the numbers in CUDA_VISIBLE_DEVICES count from 0 within the job"})
	case r.version.AtLeast(21, 8, 0):
		return r.withoutList(index, deviceList{why: fmt.Sprintf("SLURM_JOB_GPUS is not set, which slurmd %v always does: somebody changed this environment", r.version)})
	}
	return r.byMinors(index)
}

// byMinors is Slurm up to 20.11: a number is the digits at the end of a File.
func (r *resolver) byMinors(index []int) Resolution {
	devices := r.gres.Devices()
	var picked []target
	for _, n := range index {
		d := slurmconf.Device{Files: []string{fmt.Sprintf("/dev/nvidia%d", n)}}
		i := slices.IndexFunc(devices, func(d slurmconf.Device) bool {
			_, m := devFile(d.Files[len(d.Files)-1])
			return m == n
		})
		if i >= 0 {
			d = devices[i]
		} else if len(devices) > 0 {
			return cannot("no File in gres.conf ends in %d, and Slurm up to 20.11 counts by that", n)
		}
		picked = append(picked, targetOf(r.gpus, d))
	}
	return r.pick(picked, ByMinor)
}

// pick makes the answer from list entries. NVIDIA GPUs beside another vendor's
// are the answer; only foreign ones cannot be resolved here.
func (r *resolver) pick(picked []target, rule Rule) Resolution {
	res := Resolution{Verdict: Resolved, Rule: rule, Reason: "by " + string(rule)}
	var foreign, unseen []string
	for _, t := range picked {
		switch {
		case t.gpu != nil:
			res.add(t)
		case t.foreign:
			foreign = append(foreign, t.files)
		default:
			unseen = append(unseen, t.files)
			g, _ := t.missing()
			res.Missing = append(res.Missing, g)
		}
	}
	switch {
	case len(unseen) > 0:
		c := cannot("%s: not among the %d NVIDIA GPUs that the driver shows on this node", strings.Join(unseen, ", "), len(r.gpus))
		c.Missing = res.Missing
		return c
	case len(foreign) > 0 && len(res.GPUs) == 0:
		return cannot("the job's devices are not NVIDIA's: %s", strings.Join(foreign, ", "))
	case len(foreign) > 0:
		res.Warnings = append(res.Warnings, "left out, not NVIDIA's: "+strings.Join(foreign, ", "))
	}
	return res
}

// add appends a device unless it is there already.
func (res *Resolution) add(t target) {
	g := gpuOf(t.gpu, t.mig)
	if t.note != "" {
		res.Warnings = append(res.Warnings, t.note)
	}
	if !slices.ContainsFunc(res.GPUs, g.same) {
		res.GPUs = append(res.GPUs, g)
	}
}

// maskWarning tells of a mask made for the node in a place that sees less.
func (r *resolver) maskWarning(cuda []string) []string {
	visible, ok := r.inv.VisibleGPUs.Get()
	if !ok || r.slurmds() {
		return nil
	}
	index, err := numbers(strings.Join(cuda, ","))
	if err != nil || len(index) == 0 || slices.Max(index) < visible {
		return nil
	}
	return []string{fmt.Sprintf("CUDA_VISIBLE_DEVICES=%s has numbers beyond the %d visible GPUs: the mask is not valid in this view", join(index), visible)}
}

func (r *resolver) sharing() Sharing {
	has := func(name string) bool {
		return r.gres.Has(name) || slices.ContainsFunc(r.o.NodeGres, func(g slurmconf.GresItem) bool { return g.Name == name })
	}
	switch {
	case r.job.GPUs.MPS.IsSet():
		return SharedMPS
	case has("shard"):
		return SharedShard
	case r.o.NodeGres == nil:
		return SharingUnknown
	}
	return NotShared
}

func join(index []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(index), " ", ","), "[]")
}
