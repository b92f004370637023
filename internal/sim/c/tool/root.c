// The node's root: /proc/driver/nvidia, /proc/devices, /dev and, in pci.c, the
// PCI bus, as the scenario describes them. Files are written only where they
// differ, so that their times tell when something changed.
#include "tool.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { MIG_PER_GPU = 135, MIG_PER_GI = 9, MIG_FIRST = 3, MIG_GPUS = 32, MIG_GIS = 15, MIG_CIS = 8 };

static char *under_root(const char *format, va_list args) {
	char *tail;
	if (vasprintf(&tail, format, args) < 0) abort();
	return change("%s/root/%s", scenario_dir(), tail);
}

static void make_parents(char *path) {
	for (char *p = path + strlen(scenario_dir()) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		if (mkdir(path, 0755) && errno != EEXIST) fail("%s: %m", path);
		*p = '/';
	}
}

void file(const char *text, const char *format, ...) {
	va_list args;
	va_start(args, format);
	char *path = under_root(format, args), old[4096] = "";
	va_end(args);
	FILE *f = fopen(path, "re");
	if (f) {
		size_t n = fread(old, 1, sizeof old - 1, f);
		fclose(f);
		if (n == strlen(text) && !memcmp(old, text, n)) return;
	}
	make_parents(path);
	unlink(path);
	f = fopen(path, "we");
	if (!f || fputs(text, f) < 0 || fclose(f)) fail("%s: %m", path);
}

void link_to(const char *target, const char *format, ...) {
	va_list args;
	va_start(args, format);
	char *path = under_root(format, args), old[PATH_MAX];
	va_end(args);
	ssize_t n = readlink(path, old, sizeof old - 1);
	if (n > 0 && (size_t)n == strlen(target) && !memcmp(old, target, (size_t)n)) return;
	struct statfs fs;
	if (n < 0 && !statfs(path, &fs) && fs.f_type == PROC_SUPER_MAGIC) return; // the root has a real /proc
	make_parents(path);
	unlink(path);
	if (symlink(target, path)) fail("%s: %m", path);
}

// A character device, so that slurmd accepts it; without the right to make one, a plain file.
void device(const char *format, ...) {
	va_list args;
	va_start(args, format);
	char *path = under_root(format, args);
	va_end(args);
	struct stat st;
	if (!lstat(path, &st)) return;
	make_parents(path);
	if (!mknod(path, S_IFCHR | 0666, makedev(1, 3))) chmod(path, 0666);
	else if (mknod(path, S_IFREG | 0666, 0)) fail("%s: %m", path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
	(void)st; (void)type; (void)ftw;
	return remove(path);
}

void gone(const char *format, ...) {
	va_list args;
	va_start(args, format);
	char *path = under_root(format, args);
	va_end(args);
	nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void information(const struct scenario *s, int gpu) {
	struct address a = address_of(s, gpu);
	char *dir = change("proc/driver/nvidia/gpus/%04x:%02x:%02x.0", a.domain, a.bus, a.device);
	if (flag_of(s, gpu, "absent")) return gone("%s", dir);
	file(change("Model: \t\t %s\nIRQ:   \t\t %d\nGPU UUID: \t %s\nVideo BIOS: \t %s\nBus Type: \t PCIe\nDMA Size: \t 52 bits\n"
	            "DMA Mask: \t 0xfffffffffffff\nBus Location: \t %04x:%02x:%02x.0\nDevice Minor: \t %d\nGPU Firmware: \t %s\nGPU Excluded:\t No\n",
	            text_of(s, gpu, "name"), 100 + gpu, text_of(s, gpu, "uuid"), text_of(s, gpu, "vbios"), a.domain, a.bus, a.device,
	            (int)number_of(s, gpu, "minor"), text_of(s, gpu, "gsp")), "%s/information", dir);
}

static int mig_minor(int gpu_minor, int gi, int ci) { return MIG_FIRST + MIG_PER_GPU * gpu_minor + MIG_PER_GI * gi + (ci < 0 ? 0 : 1 + ci); }

// The driver's static table of capability minors: of every GPU minor that can be, not only of those that are.
static void mig_minors(void) {
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	fputs("config 1\nmonitor 2\n", f);
	for (int g = 0; g < MIG_GPUS; g++)
		for (int i = 0; i < MIG_GIS; i++) {
			fprintf(f, "gpu%d/gi%d/access %d\n", g, i, mig_minor(g, i, -1));
			for (int k = 0; k < MIG_CIS; k++) fprintf(f, "gpu%d/gi%d/ci%d/access %d\n", g, i, k, mig_minor(g, i, k));
		}
	fclose(f);
	struct stat st;
	if (stat(change("%s/root/proc/driver/nvidia-caps/mig-minors", scenario_dir()), &st) || st.st_size != (off_t)size)
		file(text, "proc/driver/nvidia-caps/mig-minors");
	free(text);
}

static void capability(int minor, const char *path, bool node) {
	file(change("DeviceFileMinor: %d\nDeviceFileMode: 292\nDeviceFileModify: 1\n", minor), "proc/driver/nvidia/capabilities/%s", path);
	if (node) device("dev/nvidia-caps/nvidia-cap%d", minor);
	else gone("dev/nvidia-caps/nvidia-cap%d", minor);
}

static void mig_devices(const struct scenario *s, int gpu) {
	int minor = (int)number_of(s, gpu, "minor");
	bool nodes = flag_of(s, gpu, "mig.device_nodes");
	gone("proc/driver/nvidia/capabilities/gpu%d", minor);
	for (int i = 0; i < MAX_SLOTS; i++) {
		struct instance m = instance_of(s, gpu, i);
		if (!m.exists || flag_of(s, gpu, "absent")) continue;
		capability(mig_minor(minor, (int)m.gi, -1), change("gpu%d/mig/gi%u/access", minor, m.gi), nodes);
		capability(mig_minor(minor, (int)m.gi, (int)m.ci), change("gpu%d/mig/gi%u/ci%u/access", minor, m.gi, m.ci), nodes);
	}
}

static void driver_files(const struct scenario *s, bool loaded) {
	if (!loaded) {
		gone("proc/driver");
		gone("sys/module/nvidia");
		gone("sys/module/nvidia_uvm");
		return file("Character devices:\n  1 mem\n  5 /dev/tty\n\nBlock devices:\n  8 sd\n", "proc/devices");
	}
	const char *version = lacks(s, NODE, "driver.kernel_version") ? text_of(s, NODE, "driver.version") : text_of(s, NODE, "driver.kernel_version");
	file(change("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build  (dvs-builder@U22-I3-AM02-24-3)\n"
	            "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n", version), "proc/driver/nvidia/version");
	file("", "proc/driver/nvidia/params");
	file(change("%s\n", version), "sys/module/nvidia/version");
	file("live\n", "sys/module/nvidia/initstate");
	file("live\n", "sys/module/nvidia_uvm/initstate");
	file("Character devices:\n  1 mem\n  5 /dev/tty\n195 nvidia\n195 nvidia-modeset\n195 nvidiactl\n234 nvidia-caps\n"
	     "511 nvidia-nvswitch\n510 nvidia-uvm\n\nBlock devices:\n  8 sd\n", "proc/devices");
	mig_minors();
	capability(1, "mig/config", true);
	capability(2, "mig/monitor", true);
}

static void machine(const struct scenario *s) {
	link_to("/proc/uptime", "proc/uptime");
	const char *path = "proc/sys/kernel/random/boot_id";
	if (lacks(s, NODE, "boot_id")) link_to("/proc/sys/kernel/random/boot_id", "%s", path);
	else file(change("%s\n", text_of(s, NODE, "boot_id")), "%s", path);
}

void root_update(const struct scenario *s) {
	bool loaded = flag_of(s, NODE, "driver.loaded");
	machine(s);
	driver_files(s, loaded);
	device("dev/nvidiactl");
	device("dev/nvidia-uvm");
	device("dev/nvidia-uvm-tools");
	nvswitches_update(s);
	host_update(s);
	for (int g = 0; g < s->gpus; g++) {
		int minor = (int)number_of(s, g, "minor");
		pci_update(s, g, loaded);
		if (loaded) information(s, g);
		if (loaded) mig_devices(s, g);
		if (flag_of(s, g, "device_node") && !flag_of(s, g, "absent")) device("dev/nvidia%d", minor);
		else gone("dev/nvidia%d", minor);
	}
}
