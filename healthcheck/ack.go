package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
	"gpuhooks/internal/drain"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
	"gpuhooks/internal/node"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/verdict"
)

// ackOptions are the flags of ack.
type ackOptions struct {
	gpus      []string
	reason    string
	noUndrain bool
	json      bool
}

func newAck(env cli.Env, o *options) *cli.Command {
	var a ackOptions
	c := &cli.Command{
		Use:   "ack",
		Short: "Say that GPUs are repaired, and give the node back",
		Long: `Say that GPUs are repaired. It looks anew; for the cards that are good now, what
the kernel log and the error counters have said of them until now counts no more,
and who said so, when and why is written into their history. If nothing fails on
the node, and the node is drained by us with a reason that nobody has changed, it is
given back, hardware or not.

It looks at tier 1. The active tests of tier 2 are not there yet: run your own
before you trust a repaired card.

EXIT STATUS
  0  acknowledged
  1  checks still fail: nothing is given back
  2  usage or configuration
  3  the driver or Slurm did not answer`,
		Example: "  gpu-healthcheck ack --gpu 3 --reason 'card replaced, ticket 4711'\n  gpu-healthcheck ack --no-undrain",
		Args:    cli.NoArgs,
		RunE:    func(*cli.Command, []string) error { return runAck(env, o.config, a) },
	}
	f := c.Flags()
	f.StringArrayVar(&a.gpus, "gpu", nil, "this `GPU` only: index, UUID, PCI address or device file; may be repeated")
	f.StringVar(&a.reason, "reason", "", "what was done, `TEXT` for the history")
	f.BoolVar(&a.noUndrain, "no-undrain", false, "leave the node's state in Slurm alone")
	f.BoolVar(&a.json, "json", false, "print JSON")
	return c
}

// acked is what --json prints.
type acked struct {
	Schema       string            `json:"schema"`
	Node         string            `json:"node"`
	Time         time.Time         `json:"time"`
	Who          string            `json:"who"`
	Reason       string            `json:"reason,omitempty"`
	Tier         int               `json:"tier"`
	Acknowledged []gpu.Identity    `json:"acknowledged"` // cards that are good now
	Failing      []verdict.Finding `json:"failing"`      // what still fails of what was to be acknowledged
	Undrained    bool              `json:"undrained"`
	Slurm        string            `json:"slurm"` // what was done there, or why nothing

	answered bool // the driver has
	asked    bool // Slurm has answered, or was not to be asked
}

func runAck(env cli.Env, path string, a ackOptions) error {
	c, err := cli.LoadConfig(path)
	if err != nil {
		return err
	}
	log := cli.NewLog(env)
	r := acked{
		Schema: "gpuhooks.ack/1", Node: cli.NodeName(c, lookup(env.Environ, "SLURMD_NODENAME")), Time: env.Now().UTC(), Who: who(env),
		Reason: cli.Clean(a.reason), Tier: 1, Acknowledged: []gpu.Identity{}, Failing: []verdict.Finding{}, asked: true,
	}
	look, v, err := r.look(env, c, a)
	if err != nil {
		return err
	}
	warn(log, look)
	d := node.Durable{Dir: c.Paths.State}
	if err := r.write(d, look, a); err != nil {
		return err
	}
	switch {
	case a.noUndrain:
		r.Slurm = "not asked"
	case !r.answered || v.Action != verdict.None || v.Outcome == check.Fail:
		r.Slurm = "not asked: the node is not well"
	default:
		r.undrain(env, c, d, look.BootID)
	}
	var b bytes.Buffer
	if a.json {
		err = cli.WriteJSON(&b, r)
	} else {
		r.print(&b)
	}
	if err == nil {
		_, err = env.Stdout.Write(b.Bytes())
	}
	switch {
	case err != nil:
		return err
	case len(r.Failing) > 0:
		return cli.Exit(cli.Failed)
	case !r.answered || !r.asked:
		return cli.Exit(cli.Blind)
	}
	return nil
}

// look reads the node and judges it by what is so now.
func (r *acked) look(env cli.Env, c config.Config, a ackOptions) (*node.Look, verdict.Verdict, error) {
	boot, err := host.NewFS(c.Paths.Root).BootID()
	if err != nil {
		return nil, verdict.Verdict{}, err
	}
	live, err := runs.Dir(c.Paths.Run).LiveJobs(boot)
	if err != nil {
		return nil, verdict.Verdict{}, err
	}
	l := node.Read(context.Background(), c, node.Options{
		Hook: verdict.HealthCheck, NodeName: r.Node, SlurmConf: lookup(env.Environ, "SLURM_CONF"), Tier: r.Tier, Now: env.Now,
	})
	only, err := chooseGPUs(l.Reading.Node.GPUs, a.gpus)
	if err != nil {
		return nil, verdict.Verdict{}, err
	}
	l.Forgive(only)
	v := l.Judge(nil, runs.NodeJobs(live))
	r.answered = l.Reading.Answer == gpu.AnswerWhole
	bad, good := map[string]bool{}, []string(nil)
	for _, f := range v.Findings {
		if f.Outcome != check.Fail {
			continue
		}
		if f.GPU != nil {
			bad[f.GPU.UUID] = true
		}
		if only == nil || f.GPU != nil && slices.Contains(only, f.GPU.UUID) {
			r.Failing = append(r.Failing, f)
		}
	}
	for _, g := range l.Reading.Node.GPUs {
		if g.Complete && !bad[g.UUID] && (only == nil || slices.Contains(only, g.UUID)) {
			r.Acknowledged = append(r.Acknowledged, g.Identity)
			good = append(good, g.UUID)
		}
	}
	return l, v, l.Forgiven(good)
}

// write puts the person's word into the history of the cards that had a fault, or
// that he names.
func (r *acked) write(d node.Durable, l *node.Look, a ackOptions) error {
	cards := r.Acknowledged
	if len(a.gpus) == 0 {
		faults, err := d.Faults()
		if err != nil {
			return err
		}
		cards = nil
		for _, k := range node.Cards(faults, r.Time) {
			i := slices.IndexFunc(r.Acknowledged, func(g gpu.Identity) bool { return k.Open && k.Is(g) })
			if i >= 0 {
				cards = append(cards, r.Acknowledged[i])
			}
		}
	}
	if len(cards) == 0 {
		return nil
	}
	return d.Acknowledge(l.Memory, cards, r.Who, r.Reason, r.Time)
}

// undrain gives the node back if its drain is ours and as we wrote it.
func (r *acked) undrain(env cli.Env, c config.Config, d node.Durable, boot string) {
	ctx, cancel := context.WithTimeout(context.Background(), c.Drain.Timeout.D())
	defer cancel()
	s := client(c, env)
	n, err := s.Node(ctx, r.Node)
	if err != nil {
		r.Slurm, r.asked = err.Error(), false
		return
	}
	own, err := d.Drains()
	if err != nil {
		cli.NewLog(env).Warnf("%v", err)
	}
	ours := drain.Ours(n.Reason)
	if k := own.Drained; k != nil {
		ours = ours && !k.Touched && k.Reason == n.Reason
	}
	switch {
	case !n.Drained():
		r.Slurm = "not drained"
	case !ours:
		r.Slurm = fmt.Sprintf("drained, and the reason is not ours: %s: scontrol update nodename=%s state=resume gives it back", n.Reason, r.Node)
		return
	default:
		if err := drain.Undrain(ctx, s, r.Node, n.Reason); err != nil {
			r.Slurm, r.asked = err.Error(), false
			return
		}
		r.Undrained, r.Slurm = true, "undrained: "+n.Reason
	}
	if err := d.KeepDrains(node.Drains{AskedBoot: boot}); err != nil {
		cli.NewLog(env).Warnf("the drain is not forgotten: %v", err)
	}
}

// who is the person: by sudo, else by login, else by number.
func who(env cli.Env) string {
	return cli.Clean(cmp.Or(lookup(env.Environ, "SUDO_USER"), lookup(env.Environ, "LOGNAME"), lookup(env.Environ, "USER"), fmt.Sprintf("uid %d", os.Getuid())))
}

func (r *acked) print(b *bytes.Buffer) {
	say := func(format string, args ...any) {
		b.WriteString(cli.Clean(r.Node+": "+fmt.Sprintf(format, args...)) + "\n")
	}
	for _, f := range r.Failing {
		say("still failing: %s", f.Line())
	}
	for _, g := range r.Acknowledged {
		say("%s: good at tier %d: acknowledged", verdict.Name(g), r.Tier)
	}
	if !r.answered {
		say("the driver did not answer for all GPUs")
	}
	say("Slurm: %s", r.Slurm)
	if len(r.Failing) == 0 {
		say("tier 2 is not there yet: run active tests of your own before you trust a repaired card")
	}
}
