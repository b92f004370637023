package check

import (
	"testing"
	"time"

	"gpuhooks/internal/gpu"
)

func TestProbeAnswer(t *testing.T) {
	answer := func(a gpu.Answer) func(*Input) { return func(in *Input) { in.Answer = a } }
	none := func(ago time.Duration) func(*Input) {
		return func(in *Input) {
			in.Answer, in.Node = gpu.AnswerNone, gpu.Node{Time: noon}
			in.Memory.NoAnswer = noon.Add(-ago)
		}
	}
	runTests(t, probeAnswer, []test{
		{"stuck", answer(gpu.AnswerStuck), []string{"fail node: a probe hangs in the driver and cannot be killed"}},
		{"crash", answer(gpu.AnswerCrash), []string{"error node: the probe died"}},
		{"garbage", answer(gpu.AnswerGarbage), []string{"error node: the probe's answer is not in this version's format"}},
		{"no probe", answer(gpu.AnswerNoProbe), []string{"error node: the probe could not be started"}},
		{"unheard of", answer("x"), []string{`error node: unknown answer "x"`}},
		{"none for the first time", func(in *Input) { in.Answer = gpu.AnswerNone }, []string{
			"error node: the driver did not answer before the deadline",
		}},
		{"none twice within 30 s", none(29 * time.Second), []string{"error node: the driver did not answer before the deadline"}},
		{"none twice, 30 s apart", none(30 * time.Second), []string{"fail node: the driver did not answer before the deadline, nor 30s ago"}},
		{"none, and this hook is hasty", func(in *Input) {
			none(time.Hour)(in)
			in.Memory.Hasty = "no time"
		}, []string{"error node: the driver did not answer before the deadline (no time)"}},
		{"only /dev and /proc answered", func(in *Input) {
			in.Answer, in.Node.GPUs, in.Node.Driver = gpu.AnswerPartial, nil, gpu.Driver{}
			in.Memory.NoAnswer = noon.Add(-time.Minute)
		}, []string{"fail node: the driver did not answer before the deadline, nor 1m0s ago"}},
		{"one card is silent", func(in *Input) {
			in.Answer, in.Node.GPUs = gpu.AnswerPartial, in.Node.GPUs[:1]
		}, []string{"error GPU-1: did not answer before the deadline"}},
		{"one card is silent again", func(in *Input) {
			in.Answer, in.Node.GPUs = gpu.AnswerPartial, in.Node.GPUs[:1]
			in.Memory.NoAnswer = noon.Add(-time.Minute)
		}, []string{"fail GPU-1: did not answer before the deadline, nor 1m0s ago"}},
		{"another job's card is silent", func(in *Input) {
			in.Answer, in.Node.GPUs, in.Only = gpu.AnswerPartial, in.Node.GPUs[:1], []string{"GPU-0"}
		}, []string{"error node: the answer broke off at the deadline"}},
		{"one card in part", func(in *Input) {
			in.Answer, in.Node.GPUs[1].Complete = gpu.AnswerPartial, false
			in.Memory.NoAnswer = noon.Add(-time.Minute)
		}, []string{"error GPU-1: answered only in part before the deadline"}},
	})
}

func TestSilent(t *testing.T) {
	in := healthy(2)
	if Silent(in) {
		t.Error("a whole answer is silent")
	}
	in.Answer, in.Node.GPUs[1].Complete = gpu.AnswerPartial, false
	if Silent(in) {
		t.Error("a card that answered in part is silent")
	}
	drop(&in, 1)
	if !Silent(in) {
		t.Error("a card that said nothing is not silent")
	}
	for _, a := range []gpu.Answer{gpu.AnswerNone, gpu.AnswerStuck} {
		if in.Answer = a; !Silent(in) {
			t.Errorf("%s is not silent", a)
		}
	}
	if in.Answer = gpu.AnswerCrash; Silent(in) {
		t.Error("a probe that died is a silent driver")
	}
}
