package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var gpuDirect = Check{
	Name: "gpudirect", Code: "GPUDIRECT", Tier: 0, Class: Config, Host: true,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Can network cards reach the memory of the GPUs in the way that the baseline asks for: nvidia_peermem, dma-buf (open kernel module, Linux 5.12 or newer), or either?",
		Why:  "Without it MPI and NCCL copy through the host's memory and say nothing: jobs on several nodes run at a fraction of their speed.",
		Cure: "modprobe nvidia_peermem (after the network driver; it refuses if that was built without peer memory), or install the open kernel module for dma-buf.",
	},
	Run: func(in Input) []Finding {
		want := in.Baseline.Node.GPUDirect
		if in.Node.Host == nil {
			return unseen()
		}
		have, known := in.Node.Host.GPUDirect.Get()
		fault := hostFault(in.Node.Host, "gpudirect")
		switch {
		case want == "":
			return []Finding{{Outcome: Skip, Text: "the baseline asks for none"}}
		case fault != nil:
			return []Finding{faulty(fault)}
		case !known:
			return []Finding{{Outcome: Skip, Text: "the driver is not loaded"}}
		}
		if text := lacking(want, have); text != "" {
			return []Finding{{Outcome: Fail, Text: text}}
		}
		return nil
	},
}

// lacking says what is missing of what is wanted: peermem, dmabuf, or any.
func lacking(want string, have gpu.GPUDirect) string {
	switch {
	case want == "peermem" && !have.Peermem:
		return "the module nvidia_peermem is not loaded, and the baseline asks for it"
	case want == "dmabuf" && !have.DMABuf:
		return "dma-buf needs the open kernel module and Linux 5.12, and the baseline asks for it"
	case want == "any" && !have.Peermem && !have.DMABuf:
		return "there is neither nvidia_peermem nor dma-buf, and the baseline asks for one"
	}
	return ""
}
