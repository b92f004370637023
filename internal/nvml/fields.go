//go:build cgo

package nvml

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// counterFields are the field values that are counters as they stand.
var counterFields = []struct {
	id      uint32
	counter gpu.Counter
}{
	{nvml.FI_DEV_TOTAL_ENERGY_CONSUMPTION, gpu.EnergyMillijoules},
	{nvml.FI_DEV_PERF_POLICY_POWER, gpu.ThrottlePowerCap},
	{nvml.FI_DEV_PERF_POLICY_THERMAL, gpu.ThrottleThermal},
	{nvml.FI_DEV_PERF_POLICY_SYNC_BOOST, gpu.ThrottleSyncBoost},
	{nvml.FI_DEV_PERF_POLICY_BOARD_LIMIT, gpu.ThrottleBoard},
	{nvml.FI_DEV_PERF_POLICY_LOW_UTILIZATION, gpu.ThrottleLowUtil},
	{nvml.FI_DEV_PERF_POLICY_RELIABILITY, gpu.ThrottleReliab},
	{nvml.FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS, gpu.ThrottleAppClocks},
	{nvml.FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS, gpu.ThrottleBaseClocks},
	{nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, gpu.ThrottleSWThermal},
	{nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, gpu.ThrottleHWThermal},
	{nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, gpu.ThrottleHWBrake},
	{nvml.FI_DEV_ECC_SBE_VOL_DEV, gpu.ECCVolCorrDRAM},
	{nvml.FI_DEV_ECC_DBE_VOL_DEV, gpu.ECCVolUncorrDRAM},
	{nvml.FI_DEV_ECC_SBE_AGG_DEV, gpu.ECCAggCorrDRAM},
	{nvml.FI_DEV_ECC_DBE_AGG_DEV, gpu.ECCAggUncorrDRAM},
	{nvml.FI_DEV_REMAPPED_COR, gpu.RemapCorrected},
	{nvml.FI_DEV_REMAPPED_UNC, gpu.RemapUncorrected},
	{nvml.FI_DEV_PCIE_REPLAY_COUNTER, gpu.PCIeReplay},
	{nvml.FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS, gpu.PCIeCorrectable},
	{nvml.FI_DEV_PCIE_COUNT_NON_FATAL_ERROR, gpu.PCIeNonFatal},
	{nvml.FI_DEV_PCIE_COUNT_FATAL_ERROR, gpu.PCIeFatal},
	{nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, gpu.NVLinkCRCFlit},
	{nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, gpu.NVLinkCRCData},
	{nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, gpu.NVLinkReplay},
	{nvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, gpu.NVLinkRecovery},
}

// sramFields give the errors outside device memory: the total less DRAM, since
// the places in between (L1, L2, registers, …) differ by architecture.
var sramFields = []struct {
	total uint32
	dram  gpu.Counter
	sram  gpu.Counter
}{
	{nvml.FI_DEV_ECC_SBE_VOL_TOTAL, gpu.ECCVolCorrDRAM, gpu.ECCVolCorrSRAM},
	{nvml.FI_DEV_ECC_DBE_VOL_TOTAL, gpu.ECCVolUncorrDRAM, gpu.ECCVolUncorrSRAM},
	{nvml.FI_DEV_ECC_SBE_AGG_TOTAL, gpu.ECCAggCorrDRAM, gpu.ECCAggCorrSRAM},
	{nvml.FI_DEV_ECC_DBE_AGG_TOTAL, gpu.ECCAggUncorrDRAM, gpu.ECCAggUncorrSRAM},
}

// stateFields are asked for beside the counters; health.go reads them.
var stateFields = []uint32{
	nvml.FI_DEV_GET_GPU_RECOVERY_ACTION,
	nvml.FI_DEV_ECC_CURRENT, nvml.FI_DEV_ECC_PENDING,
	nvml.FI_DEV_REMAPPED_PENDING, nvml.FI_DEV_REMAPPED_FAILURE,
	nvml.FI_DEV_RETIRED_SBE, nvml.FI_DEV_RETIRED_DBE, nvml.FI_DEV_RETIRED_PENDING,
	nvml.FI_DEV_MEMORY_TEMP, nvml.FI_DEV_POWER_AVERAGE, nvml.FI_DEV_POWER_CURRENT_LIMIT,
}

// linkField is asked for once a link; the counter is the sum over the links.
type linkField struct {
	id      uint32
	counter gpu.Counter // "" for what is not a counter
}

// linkFields exist before NVLink 5, linkFields5 from then on.
var (
	linkFields = []linkField{
		{nvml.FI_DEV_NVLINK_GET_STATE, ""},
		{nvml.FI_DEV_NVLINK_ERROR_DL_REPLAY, gpu.NVLinkReplay},
		{nvml.FI_DEV_NVLINK_ERROR_DL_RECOVERY, gpu.NVLinkRecovery},
		{nvml.FI_DEV_NVLINK_ERROR_DL_CRC, gpu.NVLinkCRCFlit},
	}
	linkFields5 = []linkField{
		{nvml.FI_DEV_NVLINK_GET_STATE, ""},
		{nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS, gpu.NVLinkRecovery},
		{nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, gpu.NVLinkRecoveryFailed},
		{nvml.FI_DEV_NVLINK_COUNT_RCV_ERRORS, gpu.NVLinkPacket},
		{nvml.FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS, gpu.NVLinkSymbol},
		{nvml.FI_DEV_NVLINK_COUNT_EFFECTIVE_BER, ""},
		{nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, gpu.NVLinkTxBytes},
		{nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES, gpu.NVLinkRxBytes},
	}
)

// linkFieldsOf are those that a card's links can have; of a card that is too
// new to be known, all.
func linkFieldsOf(id gpu.Identity) []linkField {
	switch {
	case !id.Architecture.IsSet():
		return slices.Concat(linkFields, linkFields5[1:])
	case since(id, "blackwell"):
		return linkFields5
	}
	return linkFields
}

// allLinks as a scope asks for the sum over the links.
const allLinks = math.MaxUint32

// fieldKey is a field value with its scope (0, a link, or allLinks).
type fieldKey struct{ id, scope uint32 }

// fieldValues are the answers of one GetFieldValues; a missing key is unknown.
type fieldValues map[fieldKey]uint64

// readFields asks for everything that is a field value in one call.
func readFields(d nvml.Device, id gpu.Identity, a *answers) fieldValues {
	links, perLink := linksOf(id), linkFieldsOf(id)
	ask := make([]nvml.FieldValue, 0, 64+links*len(perLink))
	add := func(id, scope uint32) { ask = append(ask, nvml.FieldValue{FieldId: id, ScopeId: scope}) }
	for _, id := range stateFields { // the decisive ones first
		add(id, 0)
	}
	for _, f := range sramFields {
		add(f.total, 0)
	}
	for _, f := range counterFields {
		add(f.id, 0)
	}
	if links > 0 {
		add(nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, allLinks)
		add(nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, allLinks)
	}
	for link := range uint32(links) {
		for _, f := range perLink {
			add(f.id, link)
		}
	}
	values := make(fieldValues, len(ask))
	if ret := d.GetFieldValues(ask); !a.ok("nvmlDeviceGetFieldValues", ret) {
		return values
	}
	for _, f := range ask {
		if ret := nvml.Return(f.NvmlReturn); faultKind(ret) == gpu.FaultLost || faultKind(ret) == gpu.FaultResetRequired {
			a.add(newFault("nvmlDeviceGetFieldValues", ret))
		}
		if v, ok := decode(f); ok {
			values[fieldKey{f.FieldId, f.ScopeId}] = v
		}
	}
	return values
}

// linksOf is how many NVLinks to ask for.
func linksOf(id gpu.Identity) int {
	return min(max(id.NVLinks.Or(0), 0), nvml.NVLINK_MAX_LINKS)
}

// get returns a field without scope.
func (f fieldValues) get(id uint32) (uint64, bool) {
	v, ok := f[fieldKey{id: id}]
	return v, ok
}

// counters turns the field values into counters.
func (f fieldValues) counters(id gpu.Identity) gpu.Counters {
	c := make(gpu.Counters, 2*len(counterFields))
	for _, k := range counterFields {
		if v, ok := f.get(k.id); ok {
			c[k.counter] = v
		}
	}
	for _, k := range sramFields {
		total, ok := f.get(k.total)
		if dram, known := c[k.dram]; ok && known && total >= dram {
			c[k.sram] = total - dram
		}
	}
	if v, ok := f[fieldKey{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, allLinks}]; ok {
		c[gpu.NVLinkTxBytes] = v * 1024
	}
	if v, ok := f[fieldKey{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, allLinks}]; ok {
		c[gpu.NVLinkRxBytes] = v * 1024
	}
	sums := gpu.Counters{}
	for link := range uint32(linksOf(id)) {
		for _, k := range linkFieldsOf(id) {
			if v, ok := f[fieldKey{k.id, link}]; ok && k.counter != "" {
				sums[k.counter] += v
			}
		}
	}
	for counter, v := range sums { // where the sum over the links was not answered as such
		if _, known := c[counter]; !known {
			c[counter] = v
		}
	}
	return c
}

// decode returns a field's value as a number, and false where the driver does
// not have it or answers a blank. Negative and fractional values do not occur
// among the fields that are asked for.
func decode(f nvml.FieldValue) (uint64, bool) {
	if nvml.Return(f.NvmlReturn) != nvml.SUCCESS {
		return 0, false
	}
	v := binary.NativeEndian.Uint64(f.Value[:])
	switch nvml.ValueType(f.ValueType) {
	case nvml.VALUE_TYPE_DOUBLE:
		d := math.Float64frombits(v)
		if !plausible(d) {
			return 0, false
		}
		return uint64(d), true
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		v = uint64(binary.NativeEndian.Uint32(f.Value[:]))
		return v, v != math.MaxUint32
	case nvml.VALUE_TYPE_SIGNED_INT:
		i := int32(binary.NativeEndian.Uint32(f.Value[:]))
		return uint64(i), i >= 0
	case nvml.VALUE_TYPE_UNSIGNED_SHORT:
		return uint64(binary.NativeEndian.Uint16(f.Value[:])), true
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return v, int64(v) >= 0
	}
	return v, v < math.MaxInt64-0xff // all ones, and DCGM's blanks just below the top
}
