package record

import (
	"strings"

	"gpuhooks/internal/gpu"
)

// Unit is the unit of a field and the end of its name.
type Unit string

// The units.
const (
	Joules  Unit = "joules"
	Seconds Unit = "seconds"
	Errors  Unit = "errors"
	Rows    Unit = "rows"
	Bytes   Unit = "bytes"
	Ratio   Unit = "ratio" // 0..1
	Watts   Unit = "watts"
	Celsius Unit = "celsius"
	MHz     Unit = "mhz"
)

// Integer says whether values of the unit are whole numbers.
func (u Unit) Integer() bool { return u == Errors || u == Rows || u == Bytes }

// Stat is a statistic over the time of a run.
type Stat string

// The statistics. Total belongs to counters and does not show in the name.
const (
	Total Stat = ""
	Mean  Stat = "mean"
	Max   Stat = "max"
	Min   Stat = "min"
	P05   Stat = "p05"
	P50   Stat = "p50"
	P95   Stat = "p95"
)

// Fold says how the values of several GPUs become one.
type Fold string

// The folds.
const (
	Sum     Fold = "sum"
	Average Fold = "mean" // weighted by elapsed time
	Largest Fold = "max"
	Least   Fold = "min"
)

// Quantity is one row of the field table: something measured, the statistics
// that are kept of it, where it comes from.
type Quantity struct {
	Name    string
	Unit    Unit
	Stats   []Stat
	Fold    Fold // of Total and Mean; Max folds to the largest, Min to the least
	Sources []gpu.Source
	Doc     string
	read    reader
}

// Field is one value of a GPU: a quantity and a statistic.
type Field struct {
	Quantity
	Field string // its name: sm_active_mean_ratio
	Stat  Stat
}

var (
	total    = []Stat{Total}
	mean     = []Stat{Mean}
	meanMax  = []Stat{Mean, Max}
	spread   = []Stat{Mean, Max, P05, P50, P95}
	fCounter = []gpu.Source{gpu.SourceCounter}
	fNVML    = []gpu.Source{gpu.SourceNVML}
	fGPM     = []gpu.Source{gpu.SourceGPM, gpu.SourceDCGM}
	fCycles  = []gpu.Source{gpu.SourceCounter, gpu.SourceGPM, gpu.SourceDCGM}
	fBytes   = []gpu.Source{gpu.SourceCounter, gpu.SourceGPM}
	fIdle    = []gpu.Source{gpu.SourceGPM, gpu.SourceDCGM, gpu.SourceNVML}
	fEnergy  = []gpu.Source{gpu.SourceCounter, gpu.SourceNVML}
)

// quantities is the field table. A new metric is one row here (and a gpu field,
// its reader, the simulator's key).
var quantities = []Quantity{
	{"gpu_utilization", Ratio, spread, Average, fNVML, "share of time in which at least one kernel ran, however small: 1 does not mean that the GPU was full", sampled(gpu.Utilization)},
	{"sm_active", Ratio, spread, Average, fCycles, "share of the streaming multiprocessors that had work, averaged over time; 0.8 and more is good, below 0.5 most of the GPU stood idle", cycles(gpu.SMCyclesActive, gpu.SMActive)},
	{"sm_occupancy", Ratio, spread, Average, fGPM, "warps resident on the SMs, of the most that fit", sampled(gpu.SMOccupancy)},
	{"tensor_active", Ratio, spread, Average, fCycles, "share of cycles in which a tensor pipe worked; dense matrix kernels reach 0.5 to 0.9", cycles(gpu.TensorCycles, gpu.TensorActive)},
	{"tensor_hmma_active", Ratio, mean, Average, fCycles, "the same, pipe for 16-bit and TF32", cycles(gpu.TensorHMMACycles, gpu.TensorHMMA)},
	{"tensor_imma_active", Ratio, mean, Average, fCycles, "the same, pipe for integers", cycles(gpu.TensorIMMACycles, gpu.TensorIMMA)},
	{"tensor_dmma_active", Ratio, mean, Average, fCycles, "the same, pipe for 64-bit", cycles(gpu.TensorDFMACycles, gpu.TensorDMMA)},
	{"tensor_dfma_active", Ratio, mean, Average, fCycles, "the same, fused multiply-add of 64-bit", cycles(gpu.DFMACycles, gpu.TensorDFMA)},
	{"dram_active", Ratio, spread, Average, fGPM, "share of cycles in which GPU memory moved data; about 0.8 is the practical peak", sampled(gpu.DRAMActive)},
	{"fp64_active", Ratio, mean, Average, fCycles, "share of cycles in which the FP64 pipe worked", cycles(gpu.FP64Cycles, gpu.FP64Active)},
	{"fp32_active", Ratio, mean, Average, fCycles, "share of cycles in which the FP32 pipe worked", cycles(gpu.FP32Cycles, gpu.FP32Active)},
	{"fp16_active", Ratio, mean, Average, fCycles, "share of cycles in which the FP16 pipe worked (not tensor)", cycles(gpu.FP16Cycles, gpu.FP16Active)},
	{"int_active", Ratio, mean, Average, fCycles, "share of cycles in which the integer pipe worked", cycles(gpu.IntCycles, gpu.IntActive)},
	{"graphics_active", Ratio, mean, Average, fGPM, "share of time in which the compute or graphics engine was busy", sampled(gpu.GraphicsActive)},
	{"memory_utilization", Ratio, mean, Average, fNVML, "share of time in which GPU memory was read or written", sampled(gpu.MemUtilization)},
	{"idle", Seconds, total, Sum, fIdle, "time without activity (SM active, else utilisation, below 1 %)", idle},
	{"longest_idle", Seconds, total, Largest, fIdle, "longest stretch without activity", longestIdle},
	{"idle_tail", Seconds, total, Least, fIdle, "time without activity at the end of the run", idleTail},

	{"memory_used", Bytes, spread, Sum, fNVML, "GPU memory in use, without what the driver reserves", sampled(gpu.MemoryUsed)},
	{"memory_total", Bytes, total, Sum, fNVML, "GPU memory that the GPU or MIG instance has", memoryTotal},
	{"memory_used_before", Bytes, total, Sum, fNVML, "GPU memory in use before the job: what others left", memoryBefore},

	{"energy", Joules, total, Sum, fEnergy, "energy of the GPU: the card's counter; where it has none, power integrated over the samples", energy},
	{"power", Watts, spread, Sum, fNVML, "power draw", sampled(gpu.Power)},
	{"temperature", Celsius, meanMax, Average, fNVML, "temperature of the GPU", sampled(gpu.Temperature)},
	{"memory_temperature", Celsius, meanMax, Average, fNVML, "temperature of its memory", sampled(gpu.MemTemperature)},
	{"temperature_margin", Celsius, []Stat{Min}, Least, fNVML, "degrees left to the limit at which clocks are lowered", sampled(gpu.TempMargin)},
	{"sm_clock", MHz, []Stat{Mean, Max, Min}, Average, fNVML, "clock of the SMs", sampled(gpu.SMClock)},
	{"memory_clock", MHz, mean, Average, fNVML, "clock of the memory", sampled(gpu.MemClock)},

	{"throttle_sw_power_cap", Seconds, total, Sum, fCounter, "time with clocks lowered to stay within the power limit: normal under full load", throttle(gpu.ThrottlePowerCap)},
	{"throttle_thermal", Seconds, total, Sum, fCounter, "time with clocks lowered because of heat, in software or hardware", throttle(gpu.ThrottleThermal)},
	{"throttle_sw_thermal", Seconds, total, Sum, fCounter, "time with clocks lowered by software because of heat", throttle(gpu.ThrottleSWThermal)},
	{"throttle_hw_thermal", Seconds, total, Sum, fCounter, "time with clocks lowered by hardware because of heat: a cooling fault", throttle(gpu.ThrottleHWThermal)},
	{"throttle_hw_power_brake", Seconds, total, Sum, fCounter, "time with clocks lowered because the power supply asked for it", throttle(gpu.ThrottleHWBrake)},
	{"throttle_sync_boost", Seconds, total, Sum, fCounter, "time with clocks lowered to those of another GPU of its boost group", throttle(gpu.ThrottleSyncBoost)},
	{"throttle_board_limit", Seconds, total, Sum, fCounter, "time with clocks lowered by a limit of the board", throttle(gpu.ThrottleBoard)},
	{"throttle_low_utilization", Seconds, total, Sum, fCounter, "time with clocks lowered for want of work", throttle(gpu.ThrottleLowUtil)},
	{"throttle_reliability", Seconds, total, Sum, fCounter, "time with clocks lowered by the limit of voltage", throttle(gpu.ThrottleReliab)},
	{"throttle_app_clocks", Seconds, total, Sum, fCounter, "time with clocks at the limit set for applications", throttle(gpu.ThrottleAppClocks)},
	{"throttle_base_clocks", Seconds, total, Sum, fCounter, "time with clocks below the base clock", throttle(gpu.ThrottleBaseClocks)},

	{"ecc_corrected_dram", Errors, total, Sum, fCounter, "memory errors corrected by ECC", errors2(gpu.ECCVolCorrDRAM, gpu.ECCAggCorrDRAM)},
	{"ecc_uncorrected_dram", Errors, total, Sum, fCounter, "memory errors that ECC could not correct: data was lost", errors2(gpu.ECCVolUncorrDRAM, gpu.ECCAggUncorrDRAM)},
	{"ecc_corrected_sram", Errors, total, Sum, fCounter, "errors in caches and registers corrected by ECC", errors2(gpu.ECCVolCorrSRAM, gpu.ECCAggCorrSRAM)},
	{"ecc_uncorrected_sram", Errors, total, Sum, fCounter, "errors in caches and registers that ECC could not correct", errors2(gpu.ECCVolUncorrSRAM, gpu.ECCAggUncorrSRAM)},
	{"remapped_corrected", Rows, total, Sum, fCounter, "memory rows replaced by spare ones because of corrected errors", count(gpu.RemapCorrected)},
	{"remapped_uncorrected", Rows, total, Sum, fCounter, "memory rows replaced by spare ones because of uncorrected errors", count(gpu.RemapUncorrected)},

	{"pcie_replay", Errors, total, Sum, fCounter, "PCIe packets sent again", count(gpu.PCIeReplay)},
	{"pcie_correctable", Errors, total, Sum, fCounter, "PCIe errors corrected by the link", count(gpu.PCIeCorrectable)},
	{"pcie_nonfatal", Errors, total, Sum, fCounter, "PCIe errors that lost a packet", count(gpu.PCIeNonFatal)},
	{"pcie_fatal", Errors, total, Sum, fCounter, "PCIe errors that broke the link", count(gpu.PCIeFatal)},
	{"pcie_tx", Bytes, total, Sum, fBytes, "sent by the GPU over PCIe", moved(gpu.PCIeTxBytes, gpu.PCIeTx)},
	{"pcie_rx", Bytes, total, Sum, fBytes, "received by the GPU over PCIe", moved(gpu.PCIeRxBytes, gpu.PCIeRx)},
	{"nvlink_tx", Bytes, total, Sum, fBytes, "sent by the GPU over NVLink", moved(gpu.NVLinkTxBytes, gpu.NVLinkTx)},
	{"nvlink_rx", Bytes, total, Sum, fBytes, "received by the GPU over NVLink", moved(gpu.NVLinkRxBytes, gpu.NVLinkRx)},
	{"nvlink_crc_flit", Errors, total, Sum, fCounter, "NVLink CRC errors in flits, all links", count(gpu.NVLinkCRCFlit)},
	{"nvlink_crc_data", Errors, total, Sum, fCounter, "NVLink CRC errors in data, all links", count(gpu.NVLinkCRCData)},
	{"nvlink_replay", Errors, total, Sum, fCounter, "NVLink packets sent again, all links", count(gpu.NVLinkReplay)},
	{"nvlink_recovery", Errors, total, Sum, fCounter, "NVLink recoveries, all links", count(gpu.NVLinkRecovery)},
}

// Fields lists every value of a GPU, in the order of the table.
func Fields() []Field {
	var out []Field
	for _, q := range quantities {
		for _, s := range q.Stats {
			out = append(out, Field{Quantity: q, Field: q.name(s), Stat: s})
		}
	}
	return out
}

// name puts the statistic before the unit: sm_active, mean -> sm_active_mean_ratio.
func (q Quantity) name(s Stat) string {
	parts := []string{q.Name}
	if s != Total {
		parts = append(parts, string(s))
	}
	return strings.Join(append(parts, string(q.Unit)), "_")
}

// FoldOver says how this field of several GPUs becomes one value.
func (f Field) FoldOver() Fold {
	switch f.Stat {
	case Max, P95:
		return Largest
	case Min, P05:
		return Least
	}
	return f.Fold
}
