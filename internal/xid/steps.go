package xid

// Steps says what an administrator does about a code, in order, beside what its
// catalogue entry names. Sources: NVIDIA's Xid catalogue and GPU debug guidelines.
func Steps(kind Kind, e Entry) []string {
	if kind == KindSXID {
		return append([]string{"The line's own word decides: Non-fatal is information; Fatal asks for the steps below."}, steps(ActionReset, "switch")...)
	}
	switch e.Code {
	case 13, 31:
		return []string{
			"The program of that process did it (bad address, out of range): tell the job's owner. The GPU may be used on.",
			"Different jobs on the same GPU within days: suspect the card (check repeated-app-xid), run tiers 2 and 3.",
		}
	case 45:
		return []string{"Look for the event before it on the same GPU (\"caused by previous Xid N\") and follow that.", "Alone it is an ordinary end of a process; thousands of them are, too."}
	case 63:
		return []string{"New jobs may run. Reset the GPU when it is idle, so that the remapped row is used.", "Check row-remap-failure and the spare rows left; replace the card when there are none."}
	case 74:
		return []string{"Look at the link's counters (nvidia-smi nvlink -e) and at the same link's other end.", "Once: go on. Again on the same link: drain, reset the GPUs of the fabric, reseat or replace."}
	case 154:
		return []string{"The number after \"to\" decides: 0 nothing any more, 1 reset, 2 reboot, 3 drain peer-to-peer jobs, 4 drain and reset, 5 recover IMEX.", "gpu-healthcheck shows what the driver recommends now (recovery-action)."}
	case 171, 172:
		return []string{"It tells where the XID 48 beside it happened (171 DRAM, 172 SRAM): follow that."}
	}
	return steps(e.Action, e.Category)
}

func steps(a Action, category string) []string {
	const (
		drain  = "Drain the node and let the jobs on the GPU end."
		reset  = "Reset it: nvidia-smi --gpu-reset -i <index>; where NVSwitches join them, all GPUs of the node."
		reboot = "Reboot the node."
		test   = "Run gpu-healthcheck; then undrain, or gpu-healthcheck ack after a repair."
		again  = "Again within days: run tier 3, swap the card with another slot's, replace what the fault follows."
	)
	switch a {
	case ActionNone, ActionIgnore:
		return []string{"Nothing."}
	case ActionRestartApp:
		return []string{"Tell the owner of the job: it has to be started again. The GPU may be used on."}
	case ActionReset, ActionDrainReset, ActionDrainP2P, ActionXID48, ActionRecoverPower:
		return []string{drain, reset, test, again}
	case ActionReboot:
		return []string{drain, reboot, "The GPU is missing afterwards: power the node off and on, reseat the card, look at its power leads and riser.", test, again}
	case ActionRestartVM:
		return []string{drain, "Restart the virtual machine.", test}
	case ActionMechanicals:
		return []string{drain, "Power off; reseat the card; check its power leads, riser and the supply.", test, again}
	case ActionUpdate:
		return []string{"Update the driver or the firmware that the line names.", test}
	case ActionContact:
		if category == "legacy" {
			return []string{"Current data-centre GPUs do not raise it. Once: go on. Again: look at the driver's version, then ask the vendor."}
		}
		return []string{drain, "Collect nvidia-bug-report.sh before anything is restarted.", reboot, "Ask the vendor with the report."}
	case ActionRecoverIMEX:
		return []string{"Look at the IMEX domain (nvidia-imex-ctl -N) and restart nvidia-imex on the node that is not ready."}
	case ActionCheckUVM:
		return []string{"Unified memory or vGPU in use: " + drain, reset, "Else: nothing."}
	case ActionNVLink5, ActionFollowXID154, ActionXID154:
		return []string{"The line's unit and words decide (gpu-healthcheck xid --file), or the XID 154 behind it.", "Neither at hand: gpu-healthcheck shows the driver's recovery action."}
	}
	return []string{"NVIDIA names nothing to do. Note it; look at gpu-healthcheck and at the events beside it."}
}
