// What surrounds the GPUs: daemons and stuck threads (below sim/proc, since
// /proc/<pid> is this machine's also where a node's root has it mounted), the
// clock (sim/clock), RDMA ports, the module that network cards reach GPU memory by.
#include "tool.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_DAEMON = 900 };

// A line of stat up to the start time; the rest is of no interest here.
static void stat_file(const char *dir, int id, const char *name, char state, uint64_t start) {
	file(change("%d (%.15s) %c 1 %d %d 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 %llu 0 0\n", id, name, state, id, id, (unsigned long long)start), "%s/stat", dir);
}

// Does a daemon run? "auto" has the persistence daemon and, beside NVSwitches, the fabric manager.
static bool daemon_runs(const struct scenario *s, const char *name) {
	const char *list = text_of(s, NODE, "host.daemons");
	if (!flag_of(s, NODE, "driver.loaded")) return false;
	if (strcmp(list, "auto")) return strstr(list, name) != NULL;
	return !strcmp(name, "nvidia-persistenced") || (!strcmp(name, "nv-fabricmanager") && number_of(s, NODE, "nvswitches") > 0);
}

static void daemons(const struct scenario *s) {
	static const char *const names[] = {"nv-fabricmanager", "nvidia-persistenced", "nv-hostengine", "nvidia-imex"};
	for (int i = 0; i < 4; i++) {
		char *dir = change("sim/proc/%d", FIRST_DAEMON + i);
		if (daemon_runs(s, names[i])) stat_file(dir, FIRST_DAEMON + i, names[i], 'S', 1000);
		else gone("%s", dir);
	}
}

static bool stuck_now(const struct scenario *s, const char *pid) {
	const struct entry *e = scenario_get(s, NODE, change("host.stuck.%s", pid));
	return e && !e->none;
}

// Processes that the scenario does not have any more.
static void reap(const struct scenario *s) {
	DIR *d = opendir(change("%s/root/sim/proc", scenario_dir()));
	if (!d) return;
	for (struct dirent *e; (e = readdir(d));)
		if (isdigit((unsigned char)e->d_name[0]) && atoi(e->d_name) >= FIRST_DAEMON + 4 && !stuck_now(s, e->d_name)) gone("sim/proc/%s", e->d_name);
	closedir(d);
}

static void stuck(const char *pid, const char *list) {
	char name[16] = "python", in[64] = "os_acquire_mutex", module[32] = "nvidia", job[32] = "", start[24] = "5000", switches[24] = "42";
	attribute(list, "name", name, sizeof name);
	attribute(list, "in", in, sizeof in);
	attribute(list, "module", module, sizeof module);
	attribute(list, "start", start, sizeof start);
	attribute(list, "switches", switches, sizeof switches);
	char *dir = change("sim/proc/%s", pid), *task = change("%s/task/%s", dir, pid);
	stat_file(dir, atoi(pid), name, 'D', strtoull(start, NULL, 10));
	stat_file(task, atoi(pid), name, 'D', strtoull(start, NULL, 10));
	file(change("[<0>] down+0x43/0x60\n[<0>] %s+0x35/0x60 [%s]\n[<0>] __x64_sys_ioctl+0x8b/0xc0\n", in, module), "%s/stack", task);
	file(change("%s\n", in), "%s/wchan", task);
	file(change("Name:\t%s\nvoluntary_ctxt_switches:\t%s\nnonvoluntary_ctxt_switches:\t0\n", name, switches), "%s/status", task);
	bool of_job = attribute(list, "job", job, sizeof job);
	file(of_job ? change("0::/system.slice/slurmstepd.scope/job_%s/step_0/user/task_0\n", job) : "0::/system.slice/sshd.service\n", "%s/cgroup", dir);
}

static void port_counter(const struct scenario *s, int i, const char *dir, const char *name) {
	file(change("%.0f\n", number_at(s, NODE, change("ib.%%d.%s", name), i)), "%s/counters/%s", dir, name);
}

static void ports(const struct scenario *s) {
	int count = (int)number_of(s, NODE, "ib");
	for (int i = 0; i < 16; i++) {
		char *device = change("sys/class/infiniband/mlx5_%d", i), *dir = change("%s/ports/1", device);
		if (i >= count || number_at(s, NODE, "ib.%d.absent", i)) {
			gone("%s", device);
			continue;
		}
		const char *state = text_at(s, NODE, "ib.%d.state", i);
		const char *number = !strcmp(state, "DOWN") ? "1" : !strcmp(state, "INIT") ? "2" : !strcmp(state, "ARMED") ? "3" : "4";
		const char *physical = text_at(s, NODE, "ib.%d.physical", i);
		file(change("%s: %s\n", number, state), "%s/state", dir);
		file(change("%s: %s\n", !strcmp(physical, "LinkUp") ? "5" : !strcmp(physical, "Disabled") ? "3" : "2", physical), "%s/phys_state", dir);
		file(change("%s\n", text_at(s, NODE, "ib.%d.rate", i)), "%s/rate", dir);
		file(change("%s\n", text_at(s, NODE, "ib.%d.layer", i)), "%s/link_layer", dir);
		port_counter(s, i, dir, "link_downed");
		port_counter(s, i, dir, "local_link_integrity_errors");
	}
}

void host_update(const struct scenario *s) {
	daemons(s);
	reap(s);
	for (unsigned i = 0; i <= s->mask; i++) {
		const struct entry *e = &s->table[i];
		if (e->name && e->gpu == NODE && !strncmp(e->name, "host.stuck.", 11) && !e->none) stuck(e->name + 11, e->text);
	}
	if (lacks(s, NODE, "host.clock")) gone("sim/clock");
	else file(change("%s\n", text_of(s, NODE, "host.clock")), "sim/clock");
	if (flag_of(s, NODE, "host.peermem") && flag_of(s, NODE, "driver.loaded")) file("live\n", "sys/module/nvidia_peermem/initstate");
	else gone("sys/module/nvidia_peermem");
	int switches = (int)number_of(s, NODE, "nvswitches");
	for (int i = 0; i < switches; i++) {
		char *name = change("0000:%02x:00.0", 5 + i);
		link_to(change("../../devices/%s", name), "sys/bus/pci/drivers/nvidia-nvswitch/%s", name);
	}
	ports(s);
}
