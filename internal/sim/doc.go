// Package sim makes simulated GPU nodes: a libnvidia-ml.so.1 in C that the real
// go-nvml loads, the scenario it answers from, the counters that advance with
// the clock and with load, and beside it a root with /proc, /sys and /dev as
// such a node would have them. It is for tests and demonstrations only.
//
// A node is one directory:
//
//	scenario             what the node is, one `key = value` a line (KEYS.md)
//	state                counters, workloads and events, shared by all processes
//	libnvidia-ml.so.1    found by its path; it finds the scenario beside itself
//	gpu-sim              the tool: load, set, xid, ecc, clear, calls
//	root/                /proc/driver/nvidia, /sys/bus/pci, /dev, the kernel log
package sim
