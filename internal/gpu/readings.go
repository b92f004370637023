package gpu

// Metric names a quantity that goes up and down. The unit stands at the end of
// the name; ratios are 0..1.
type Metric string

// The metrics and their NVML source.
const (
	Utilization    Metric = "gpu_utilization_ratio" // nvmlDeviceGetUtilizationRates: share of time with at least one kernel
	MemUtilization Metric = "memory_utilization_ratio"
	GraphicsActive Metric = "graphics_active_ratio"      // GPM 1
	SMActive       Metric = "sm_active_ratio"            // GPM 2
	SMOccupancy    Metric = "sm_occupancy_ratio"         // GPM 3
	IntActive      Metric = "int_active_ratio"           // GPM 4
	TensorActive   Metric = "tensor_active_ratio"        // GPM 5, any tensor pipe
	TensorDFMA     Metric = "tensor_dfma_active_ratio"   // GPM 6
	TensorHMMA     Metric = "tensor_hmma_active_ratio"   // GPM 7
	TensorDMMA     Metric = "tensor_dmma_active_ratio"   // GPM 8
	TensorIMMA     Metric = "tensor_imma_active_ratio"   // GPM 9
	DRAMActive     Metric = "dram_active_ratio"          // GPM 10
	FP64Active     Metric = "fp64_active_ratio"          // GPM 11
	FP32Active     Metric = "fp32_active_ratio"          // GPM 12
	FP16Active     Metric = "fp16_active_ratio"          // GPM 13
	PCIeTx         Metric = "pcie_tx_bytes_per_second"   // GPM 20
	PCIeRx         Metric = "pcie_rx_bytes_per_second"   // GPM 21
	NVLinkRx       Metric = "nvlink_rx_bytes_per_second" // GPM 60
	NVLinkTx       Metric = "nvlink_tx_bytes_per_second" // GPM 61
	MemoryUsed     Metric = "memory_used_bytes"          // without what the driver reserves
	Power          Metric = "power_watts"
	Temperature    Metric = "temperature_celsius"
	MemTemperature Metric = "memory_temperature_celsius"
	TempMargin     Metric = "temperature_margin_celsius" // to the slowdown limit
	FanSpeed       Metric = "fan_speed_ratio"            // of the card's own fan
	SMClock        Metric = "sm_clock_mhz"
	MemClock       Metric = "memory_clock_mhz"
)

// Readings are the values at one time, or the means over one interval. A
// missing key is unknown, not zero.
type Readings map[Metric]float64

// Source says where a value came from.
type Source string

// The sources. SourceNone goes with a null value.
const (
	SourceCounter Source = "counter" // difference of two counters
	SourceGPM     Source = "gpm"
	SourceDCGM    Source = "dcgm"
	SourceNVML    Source = "nvml"
	SourceNone    Source = "none"
)
