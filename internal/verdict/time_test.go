package verdict

import (
	"testing"
	"time"

	"gpuhooks/internal/check"
)

// still is a clock that stands.
func still() time.Time { return time.Time{} }

func TestChecksAreTimed(t *testing.T) {
	now := time.Unix(0, 0)
	clock := func() time.Time { now = now.Add(250 * time.Millisecond); return now }
	later := finds("b", "B")
	later.Tier = 1
	v := Run([]check.Check{finds("a", "A"), later}, check.Input{}, enforce(nil), HealthCheck, clock)
	if v.Checks[0].Seconds != 0.25 || v.Checks[1].Seconds != 0 {
		t.Errorf("%+v", v.Checks)
	}
}

// Undrain looks at the class: one broken card in the reason is enough for a
// person to have to come.
func TestHardwareAnywhereInTheReason(t *testing.T) {
	one, two := finds("a", "A", finding(check.Fail, 0, "x")), finds("b", "B", finding(check.Fail, 1, "y"))
	one.Class, two.Class = check.Config, check.Hardware
	v := Run([]check.Check{one, two}, check.Input{}, enforce(nil), HealthCheck, still)
	if v.Code != "A" || v.Class != check.Hardware {
		t.Errorf("code %s, class %s", v.Code, v.Class)
	}
}
