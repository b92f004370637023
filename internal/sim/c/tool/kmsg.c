// The kernel log, root/dev/kmsg: records as /dev/kmsg gives them, appended to a file.
#include "tool.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

// "priority,sequence,microseconds since boot,-;text"
void kernel_log(const char *text) {
	char path[PATH_MAX + 16], tail[4096];
	snprintf(path, sizeof path, "%s/root/dev/kmsg", scenario_dir());
	int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0) fail("%s: %m", path);
	flock(fd, LOCK_EX);
	off_t end = lseek(fd, 0, SEEK_END), from = end > (off_t)sizeof tail - 1 ? end - (off_t)sizeof tail + 1 : 0;
	ssize_t n = pread(fd, tail, (size_t)(end - from), from);
	unsigned long long sequence = 0;
	if (n > 1) {
		tail[n - 1] = 0;
		const char *last = strrchr(tail, '\n');
		if (sscanf(last ? last + 1 : tail, "%*u,%llu", &sequence) == 1) sequence++;
	}
	char *record = change("3,%llu,%lld,-;%s\n", sequence, (long long)(monotonic() / 1000), text);
	if (write(fd, record, strlen(record)) < 0) fail("%s: %m", path);
	close(fd);
}

static const struct { int code; bool of_process; const char *text; } texts[] = {
	{13, true, "Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0): Out Of Range Address"},
	{31, true, "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC6 GPCCLIENT_T1_13 faulted @ 0x528f_d2418000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"},
	{43, true, "Ch 00000008"},
	{45, true, "Ch 00000008"},
	{46, false, "GPU stopped processing"},
	{48, false, "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at physAddr 0x4df41180 partition 16, subpartition 3."},
	{62, false, "203c(3090) 85020c09 ffffbd53"},
	{63, false, "Row Remapper: New row (0x00000000a9164980) marked for remapping, reset gpu to activate."},
	{64, false, "Row Remapper: Failed to remap row (0x00000000a9164980)."},
	{74, false, "NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)"},
	{79, false, "GPU has fallen off the bus."},
	{92, false, "High single-bit ECC error rate"},
	{94, true, "Contained: SM (0x1). RST: No, D-RST: No"},
	{95, true, "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No"},
	{109, true, "Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x3c046"},
	{119, true, "Timeout after 45s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802002 0x8)."},
	{140, false, "An uncorrectable ECC error detected (possible firmware handling failure) DRAM:1, LTC:0, MMU:0, PCIE:0"},
	{171, false, "HBM, Uncorrectable DRAM error in FBPA 3 subpartition 0 physAddr 0x7a622aee0"},
};

// The workload on a GPU, as the driver names it: pid=4091, name=python3.
static char *blamed(const struct state *st, int gpu) {
	for (int i = 0; i < st->loads; i++) {
		const struct load *l = &st->load[i];
		if (!l->pid || !l->target[gpu]) continue;
		char path[64], name[64] = "gpu-sim";
		snprintf(path, sizeof path, "/proc/%d/comm", l->pid);
		FILE *f = fopen(path, "re");
		if (f && fgets(name, sizeof name, f)) name[strcspn(name, "\n")] = 0;
		if (f) fclose(f);
		return change("pid=%d, name=%s, ", l->pid, name);
	}
	return change("pid='<unknown>', name=<unknown>, ");
}

// XID 154 tells the recovery action, as field 230 has it.
static char *recovery(const struct scenario *s, int gpu) {
	static const char *const names[] = {"None", "GPU Reset Required", "Node Reboot Required", "Drain P2P", "Drain and Reset", "Recover IMEX Domain"};
	unsigned to = (unsigned)number_of(s, gpu, "recovery");
	unsigned from = to ? 0 : 1;
	return change("GPU recovery action changed from 0x%x (%s) to 0x%x (%s)", from, names[from], to, to < 6 ? names[to] : "Unknown");
}

// The driver's lines, and the event for those who wait for one.
void xid(const struct scenario *s, int gpu, int code, const char *text) {
	unsigned domain = 0, bus = 0, device = 0;
	sscanf(text_of(s, gpu, "pci"), "%x:%x:%x", &domain, &bus, &device);
	bool of_process = false;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (texts[i].code != code) continue;
		if (!text || !*text) text = texts[i].text;
		of_process = texts[i].of_process;
	}
	if (code == 154 && (!text || !*text)) text = recovery(s, gpu);
	struct state *st = node_lock(s);
	state_reap(st);
	char *who = of_process ? blamed(st, gpu) : change("pid='<unknown>', name=<unknown>, ");
	kernel_log(change("NVRM: GPU at PCI:%04x:%02x:%02x: %s", domain, bus, device, text_of(s, gpu, "uuid")));
	kernel_log(change("NVRM: Xid (PCI:%04x:%02x:%02x): %d, %s%s", domain, bus, device, code, who, text && *text ? text : "unknown error"));
	if (code == 79) kernel_log(change("NVRM: GPU %04x:%02x:%02x.0: GPU has fallen off the bus.", domain, bus, device));
	state_event(st, (struct event){.type = 8 /* nvmlEventTypeXidCriticalError */, .data = (uint64_t)code, .gpu = gpu, .gi = UINT32_MAX, .ci = UINT32_MAX});
	node_unlock(st);
}
