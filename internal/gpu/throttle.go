package gpu

// Bits of Health.Throttle (nvmlClocksEventReasons): what keeps the clocks low
// now.
const (
	ReasonIdle         uint64 = 1 << 0 // nothing to do
	ReasonAppClocks    uint64 = 1 << 1 // application clocks are set
	ReasonPowerCap     uint64 = 1 << 2 // at its limit under load, this is how the card works
	ReasonHWSlowdown   uint64 = 1 << 3 // heat or the power brake, halving the clocks or more
	ReasonSyncBoost    uint64 = 1 << 4
	ReasonSWThermal    uint64 = 1 << 5
	ReasonHWThermal    uint64 = 1 << 6
	ReasonPowerBrake   uint64 = 1 << 7 // asked for by the power supply or the chassis
	ReasonDisplayClock uint64 = 1 << 8
)

var reasonNames = []struct {
	bit  uint64
	name string
}{
	{ReasonHWThermal, "hw-thermal"},
	{ReasonPowerBrake, "power-brake"},
	{ReasonHWSlowdown, "hw-slowdown"},
	{ReasonSWThermal, "sw-thermal"},
	{ReasonPowerCap, "power-cap"},
	{ReasonAppClocks, "app-clocks"},
	{ReasonSyncBoost, "sync-boost"},
	{ReasonDisplayClock, "display"},
}

// ThrottleReasons names the bits that lower the clocks of a working card, the
// gravest first. Being idle is none of them.
func ThrottleReasons(bits uint64) []string {
	var out []string
	for _, r := range reasonNames {
		if bits&r.bit != 0 {
			out = append(out, r.name)
		}
	}
	return out
}
