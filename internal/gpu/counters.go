package gpu

import "slices"

// Counter names a quantity that only grows until the driver is loaded anew or
// the card is reset. The unit stands at the end of the name.
type Counter string

// The counters and their NVML source.
const (
	EnergyMillijoules Counter = "energy_millijoules" // nvmlDeviceGetTotalEnergyConsumption, since driver load

	// Throttling, nanoseconds (field values 74–81, 269–271).
	ThrottlePowerCap   Counter = "throttle_sw_power_cap_ns"
	ThrottleThermal    Counter = "throttle_thermal_ns" // field 75, the sum of SW and HW thermal on older drivers
	ThrottleSyncBoost  Counter = "throttle_sync_boost_ns"
	ThrottleBoard      Counter = "throttle_board_limit_ns"
	ThrottleLowUtil    Counter = "throttle_low_utilization_ns"
	ThrottleReliab     Counter = "throttle_reliability_ns"
	ThrottleAppClocks  Counter = "throttle_app_clocks_ns"
	ThrottleBaseClocks Counter = "throttle_base_clocks_ns"
	ThrottleSWThermal  Counter = "throttle_sw_thermal_ns"
	ThrottleHWThermal  Counter = "throttle_hw_thermal_ns"
	ThrottleHWBrake    Counter = "throttle_hw_power_brake_ns"

	// ECC errors: volatile (since driver load) and aggregate (life of the card).
	ECCVolCorrDRAM   Counter = "ecc_volatile_corrected_dram_errors"
	ECCVolUncorrDRAM Counter = "ecc_volatile_uncorrected_dram_errors"
	ECCVolCorrSRAM   Counter = "ecc_volatile_corrected_sram_errors"
	ECCVolUncorrSRAM Counter = "ecc_volatile_uncorrected_sram_errors"
	ECCAggCorrDRAM   Counter = "ecc_aggregate_corrected_dram_errors"
	ECCAggUncorrDRAM Counter = "ecc_aggregate_uncorrected_dram_errors"
	ECCAggCorrSRAM   Counter = "ecc_aggregate_corrected_sram_errors"
	ECCAggUncorrSRAM Counter = "ecc_aggregate_uncorrected_sram_errors"

	RemapCorrected   Counter = "remapped_rows_corrected_rows"
	RemapUncorrected Counter = "remapped_rows_uncorrected_rows"

	PCIeReplay      Counter = "pcie_replay_errors"
	PCIeCorrectable Counter = "pcie_correctable_errors"
	PCIeNonFatal    Counter = "pcie_nonfatal_errors"
	PCIeFatal       Counter = "pcie_fatal_errors"

	// Advanced error reporting of the bus (aer_dev_* of sysfs), of the card or of
	// the port above it; reset at boot only.
	AERCorrectable Counter = "pcie_aer_correctable_errors"
	AERNonFatal    Counter = "pcie_aer_nonfatal_errors"
	AERFatal       Counter = "pcie_aer_fatal_errors"
	PCIeTxBytes    Counter = "pcie_tx_bytes" // GPM 255
	PCIeRxBytes    Counter = "pcie_rx_bytes" // GPM 256
	NVLinkTxBytes  Counter = "nvlink_tx_bytes"
	NVLinkRxBytes  Counter = "nvlink_rx_bytes"
	NVLinkCRCFlit  Counter = "nvlink_crc_flit_errors" // sums over the links
	NVLinkCRCData  Counter = "nvlink_crc_data_errors"
	NVLinkReplay   Counter = "nvlink_replay_errors"
	NVLinkRecovery Counter = "nvlink_recovery_errors"

	// NVLink 5 only, sums over the links. Symbol errors are corrected on the way
	// and come in numbers on healthy cards.
	NVLinkRecoveryFailed Counter = "nvlink_failed_recovery_errors" // the link went down
	NVLinkPacket         Counter = "nvlink_packet_errors"          // received with errors
	NVLinkSymbol         Counter = "nvlink_symbol_errors"

	SMCyclesElapsed  Counter = "sm_elapsed_cycles"    // GPM 248, since reboot
	SMCyclesActive   Counter = "sm_active_cycles"     // GPM 249
	TensorCycles     Counter = "tensor_active_cycles" // GPM 250, any MMA
	TensorDFMACycles Counter = "tensor_dmma_active_cycles"
	TensorHMMACycles Counter = "tensor_hmma_active_cycles"
	TensorIMMACycles Counter = "tensor_imma_active_cycles"
	DFMACycles       Counter = "dfma_active_cycles"
	IntCycles        Counter = "int_active_cycles"
	FP64Cycles       Counter = "fp64_active_cycles"
	FP32Cycles       Counter = "fp32_active_cycles"
	FP16Cycles       Counter = "fp16_active_cycles"
)

// Counters are the values at one time. A missing key is unknown, not zero.
type Counters map[Counter]uint64

// Get returns a counter and whether it is known.
func (c Counters) Get(k Counter) (uint64, bool) { v, ok := c[k]; return v, ok }

// Delta returns end − start for every counter known on both sides. A counter
// that went backwards was reset in between: its delta is the value since the
// reset, a lower bound, and its name is in reset (sorted).
func Delta(start, end Counters) (d Counters, reset []Counter) {
	d = Counters{}
	for k, e := range end {
		s, ok := start[k]
		switch {
		case !ok:
		case e < s:
			d[k] = e
			reset = append(reset, k)
		default:
			d[k] = e - s
		}
	}
	slices.Sort(reset)
	return d, reset
}
