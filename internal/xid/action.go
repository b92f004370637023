package xid

import (
	"fmt"
	"slices"
	"strings"
)

// Action is what is to be done about an event: NVIDIA's bucket, lower case.
type Action string

// The actions.
const (
	ActionNone         Action = "none"   // the line by itself asks for nothing
	ActionIgnore       Action = "ignore" // nothing to do
	ActionRestartApp   Action = "restart_app"
	ActionReset        Action = "reset_gpu"
	ActionDrainReset   Action = "drain_and_reset"
	ActionDrainP2P     Action = "drain_p2p"
	ActionRecoverIMEX  Action = "recover_imex"
	ActionReboot       Action = "reboot"
	ActionRestartVM    Action = "restart_vm"
	ActionContact      Action = "contact_support"
	ActionMechanicals  Action = "check_mechanicals"
	ActionUpdate       Action = "update_swfw"
	ActionCheckUVM     Action = "check_uvm"
	ActionRecoverPower Action = "recover_feature_reset_gpu"
	ActionUnspecified  Action = "unspecified"     // NVIDIA names no action
	ActionXID45        Action = "workflow_xid_45" // alone: nothing for the node; else follow the other XID
	ActionXID48        Action = "workflow_xid_48" // alone: reset; with 63 or 64: drain and reset
	ActionXID168       Action = "workflow_xid_168"
	ActionNVLink       Action = "workflow_nvlink_err"  // 74: seven register words decide
	ActionNVLink5      Action = "workflow_nvlink5_err" // 144–150 whose words could not be decoded
	ActionXID154       Action = "xid_154"              // 154 without its number: ask the driver
	ActionFollowXID154 Action = "xid_154_eval"         // the 154 that follows decides
)

// advice says in words what each action means; its keys are all actions.
func (a Action) advice() (string, bool) {
	switch a {
	case ActionNone, ActionIgnore:
		return "nothing to do", true
	case ActionRestartApp:
		return "restart the application", true
	case ActionReset:
		return "reset the GPU", true
	case ActionDrainReset:
		return "drain the node, then reset the GPU", true
	case ActionDrainP2P:
		return "end the jobs that use peer-to-peer copies of this GPU, then reset it", true
	case ActionRecoverIMEX:
		return "recover the IMEX domain", true
	case ActionReboot:
		return "reboot the node", true
	case ActionRestartVM:
		return "restart the virtual machine", true
	case ActionContact:
		return "contact support", true
	case ActionMechanicals:
		return "check the card's seat and its power leads", true
	case ActionUpdate:
		return "update driver or firmware", true
	case ActionCheckUVM:
		return "reset the GPU if unified memory is in use", true
	case ActionRecoverPower:
		return "reset the GPU if power smoothing is wanted", true
	case ActionUnspecified:
		return "NVIDIA names no action", true
	case ActionXID45:
		return "nothing by itself; look for an XID before it", true
	case ActionXID48:
		return "reset the GPU (drain the node first if XID 63 or 64 came with it)", true
	case ActionXID168:
		return "follow NVIDIA's workflow for XID 168", true
	case ActionNVLink:
		return "look at the link's error counters; reset the GPU if it repeats", true
	case ActionNVLink5:
		return "ask the driver for its recovery action", true
	case ActionXID154, ActionFollowXID154:
		return "follow the driver's recovery action", true
	}
	return "", false
}

// Advice says in words what to do.
func (a Action) Advice() string {
	s, _ := a.advice()
	return s
}

func (a Action) known() bool {
	_, ok := a.advice()
	return ok
}

// Bucket is the action as NVIDIA's catalogue writes it, RESET_GPU; "none" where
// the line by itself asks for nothing.
func (a Action) Bucket() string {
	if a == ActionNone {
		return string(a)
	}
	return strings.ToUpper(string(a))
}

// MoreThanRestart says that the action asks for more than a restart of the
// application. What NVIDIA names no action for needs a person's look, too.
func (a Action) MoreThanRestart() bool {
	switch a {
	case ActionNone, ActionIgnore, ActionRestartApp, ActionXID45:
		return false
	}
	return true
}

// Actions lists the actions that a catalogue may name.
func Actions() []Action {
	return []Action{ActionIgnore, ActionRestartApp, ActionReset, ActionDrainReset, ActionDrainP2P, ActionRecoverIMEX,
		ActionReboot, ActionRestartVM, ActionContact, ActionMechanicals, ActionUpdate, ActionCheckUVM, ActionRecoverPower,
		ActionUnspecified, ActionXID45, ActionXID48, ActionXID168, ActionNVLink, ActionNVLink5, ActionXID154, ActionFollowXID154}
}

// Severity says what an event means for the node.
type Severity string

// The severities. Only Fail may take a node out of service.
const (
	Info Severity = "info"
	Warn Severity = "warn"
	Fail Severity = "fail"
)

// Judgement is what an event asks for.
type Judgement struct {
	Action   Action
	Severity Severity
	Name     string // what happened, in the catalogue's words
	Category string // of the catalogue; "" when it does not know the code
}

// Judge says what one event asks for by itself.
func Judge(e Event, c Catalogue) Judgement {
	j, own := look(e, c)
	if own != "" {
		j.Severity = own
		return j
	}
	j.Severity = severity(j.Action, j.Category)
	if e.Kind == KindMismatch || (e.Kind == KindGSP && j.Action == ActionNone) {
		j.Severity = Warn
	}
	return j
}

// JudgeAll judges events of one node together: what 45, 48 and some NVLink5
// errors ask for depends on what else happened on the same GPU.
func JudgeAll(events []Event, c Catalogue) []Judgement {
	out := make([]Judgement, len(events))
	for i, e := range events {
		j := Judge(e, c)
		switch j.Action {
		case ActionXID45:
			j.Action = ActionIgnore
		case ActionXID48:
			j.Action = ActionReset
			if _, ok := latest(events, e.PCI, 63, 64); ok {
				j.Action = ActionDrainReset
			}
		case ActionFollowXID154, ActionNVLink5:
			if verdict, ok := latest(events, e.PCI, 154); ok {
				v := Judge(verdict, c)
				j.Action, j.Severity = v.Action, v.Severity
			}
		}
		out[i] = j
	}
	return out
}

// latest finds the last XID of a card with one of the codes.
func latest(events []Event, pci string, codes ...int) (found Event, ok bool) {
	for _, e := range events {
		if e.Kind == KindXID && e.PCI == pci && slices.Contains(codes, e.Code) && (!ok || e.after(found)) {
			found, ok = e, true
		}
	}
	return found, ok
}

// look returns action, name and category, and the severity that a site set.
func look(e Event, c Catalogue) (Judgement, Severity) {
	switch e.Kind {
	case KindSXID:
		return lookSwitch(e, c)
	case KindMismatch:
		return Judgement{Action: ActionNone, Name: "a client's driver library does not fit the kernel module", Category: "driver"}, ""
	case KindGSP:
		if e.CatalogueCode() == 0 {
			return Judgement{Action: ActionNone, Name: "GPU system processor: " + e.Text, Category: "firmware"}, ""
		}
	}
	code := e.CatalogueCode()
	entry, ok := c.Lookup(code)
	if !ok {
		return Judgement{Action: ActionUnspecified, Name: "not in NVIDIA's catalogue"}, ""
	}
	j := Judgement{Action: entry.Action, Name: entry.Name, Category: entry.Category}
	if e.Kind == KindXID && entry.Severity == "" {
		j.Action = refine(e, entry.Action, c)
	}
	return j, entry.Severity
}

// refine lets the line's own words decide where they say more than the number.
func refine(e Event, byCode Action, c Catalogue) Action {
	switch {
	case e.Code == 45 && e.CausedBy != 0:
		return ActionIgnore // the other XID says what to do
	case e.Code == 94 || e.Code == 95:
		if on, _ := e.DrainReset.Get(); on {
			return ActionDrainReset
		}
		if on, _ := e.Reset.Get(); on {
			return ActionReset
		}
	case e.Code == 154:
		if to, ok := e.To.Get(); ok {
			return RecoveryAction(to)
		}
	case e.Code >= 144 && e.Code <= 150:
		if a, ok := c.decode(e.Code, e.Link); ok {
			return a
		}
	}
	return byCode
}

// RecoveryAction translates the driver's recovery action (NVML field 230, the
// numbers of XID 154).
func RecoveryAction(n int) Action {
	switch n {
	case 0:
		return ActionIgnore
	case 1:
		return ActionReset
	case 2:
		return ActionReboot
	case 3:
		return ActionDrainP2P
	case 4:
		return ActionDrainReset
	case 5:
		return ActionRecoverIMEX
	}
	return ActionUnspecified
}

func lookSwitch(e Event, c Catalogue) (Judgement, Severity) {
	entry, known := c.sxid[e.Code]
	j := Judgement{Action: ActionUnspecified, Name: "NVSwitch error", Category: "nvlink"}
	if known && entry.Name != "" {
		j.Name = entry.Name
	}
	switch {
	case e.Switch == SwitchData:
		j.Action = ActionNone
		return j, Info
	case known && entry.Action != "":
		j.Action = entry.Action
	case e.Switch == SwitchFatal:
		j.Action = ActionReset
	case e.Switch == SwitchNonFatal:
		j.Action = ActionIgnore
	}
	return j, entry.Severity
}

// hardware are the categories whose "contact support" means a broken part.
// Everything else that has no clear action is a warning: a prolog that fails by
// mistake takes node after node out of service.
func severity(a Action, category string) Severity {
	switch a {
	case ActionNone, ActionIgnore, ActionRestartApp, ActionXID45:
		return Info
	case ActionReset, ActionReboot, ActionDrainReset, ActionDrainP2P, ActionRestartVM, ActionMechanicals, ActionXID48:
		return Fail
	case ActionContact:
		if slices.Contains([]string{"memory", "pcie", "power", "nvlink", "firmware", "c2c"}, category) {
			return Fail
		}
	}
	return Warn
}

// Explain says in one line what an event is and what to do.
func Explain(e Event, c Catalogue) string {
	what := Meaning(e, c)
	if e.Kind == KindXID && e.Code == 154 && e.To.IsSet() && e.To.Or(0) == 0 {
		return what + "; it recommends nothing any more"
	}
	return what + "; " + Judge(e, c).Action.Advice()
}

// Meaning says in one line what an event is.
func Meaning(e Event, c Catalogue) string {
	name := Judge(e, c).Name
	switch e.Kind {
	case KindXID:
		what := fmt.Sprintf("XID %d: %s", e.Code, name)
		if e.Code == 45 && e.CausedBy != 0 {
			what += fmt.Sprintf(" (caused by XID %d)", e.CausedBy)
		}
		return what
	case KindSXID:
		return fmt.Sprintf("SXid %d (%s): %s", e.Code, e.Switch, name)
	case KindFallen:
		return "GPU has fallen off the bus (as XID 79): " + name
	}
	return name
}
