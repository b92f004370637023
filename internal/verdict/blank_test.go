package verdict

import (
	"testing"

	"gpuhooks/internal/check"
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

// Nobody has looked, so nothing is well: whatever kept the probe from answering,
// no check may call that a pass.
func TestNothingReadIsNoPass(t *testing.T) {
	for _, a := range []gpu.Answer{gpu.AnswerNone, gpu.AnswerStuck, gpu.AnswerCrash, gpu.AnswerGarbage, gpu.AnswerNoProbe} {
		v := Run(check.All(), check.Input{Tier: 1, Answer: a}, config.Default(), Prolog, still)
		if v.Outcome != check.Error && v.Outcome != check.Fail {
			t.Errorf("%s: the verdict is %s", a, v.Outcome)
		}
		for _, c := range v.Checks {
			if c.Outcome == check.Pass {
				t.Errorf("%s: check %s passes", a, c.Check)
			}
		}
	}
}
