package gpu

// Answer says how a reading of a node came about. Anything but AnswerWhole is
// never "good": what is missing was not seen.
type Answer string

// The answers of gpu-probe.
const (
	AnswerWhole   Answer = "whole"
	AnswerPartial Answer = "partial"  // the deadline came first
	AnswerNone    Answer = "none"     // nothing beyond the hello, or not even that
	AnswerStuck   Answer = "stuck"    // the probe sits in state D after KILL, or an older one still does
	AnswerCrash   Answer = "crash"    // it died
	AnswerGarbage Answer = "garbage"  // not our protocol, or another version
	AnswerNoProbe Answer = "no-probe" // could not be started
)
