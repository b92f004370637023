// The node's PCI bus in /sys, laid out as the kernel does: the directory of a
// card lies in that of the port above it, and /sys/bus/pci/devices holds links.
#include "tool.h"

#include <stdio.h>
#include <string.h>

struct address address_of(const struct scenario *s, int gpu) {
	struct address a = {0};
	sscanf(text_of(s, gpu, "pci"), "%x:%x:%x", &a.domain, &a.bus, &a.device);
	return a;
}

static const char *link_speed(unsigned generation) {
	static const char *const speed[] = {"Unknown", "2.5 GT/s PCIe", "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"};
	return speed[generation < 7 ? generation : 0];
}

static void link_files(const char *dir, unsigned gen, unsigned gen_max, int width, int width_max) {
	file(change("%s\n", link_speed(gen)), "%s/current_link_speed", dir);
	file(change("%d\n", width), "%s/current_link_width", dir);
	file(change("%s\n", link_speed(gen_max)), "%s/max_link_speed", dir);
	file(change("%d\n", width_max), "%s/max_link_width", dir);
}

// One file of Advanced Error Reporting: the kinds of errors, all of them of the first kind here, and their total.
static void aer_file(const char *dir, const char *name, const char *kinds, const char *total, double errors) {
	char *text = change("%s", "");
	for (const char *kind = kinds; *kind; kind += strcspn(kind, " "), kind += strspn(kind, " ")) {
		text = change("%s%.*s %.0f\n", text, (int)strcspn(kind, " "), kind, errors && kind == kinds ? errors : 0);
	}
	file(change("%s%s %.0f\n", text, total, errors), "%s/%s", dir, name);
}

static void aer(const struct scenario *s, int gpu, const char *of, const char *dir) {
	static const char uncorrectable[] = "Undefined DLP SDES TLP FCP CmpltTO CmpltAbrt UnxCmplt RxOF MalfTLP ECRC UnsupReq ACSViol "
		"UncorrIntErr BlockedTLP AtomicOpBlocked TLPBlockedErr PoisonTLPBlocked";
	if (lacks(s, gpu, "aer")) {
		gone("%s/aer_dev_correctable", dir);
		gone("%s/aer_dev_nonfatal", dir);
		gone("%s/aer_dev_fatal", dir);
		return;
	}
	aer_file(dir, "aer_dev_correctable", "RxErr BadTLP BadDLLP Rollover Timeout NonFatalErr CorrIntErr HeaderOF", "TOTAL_ERR_COR",
	         number_of(s, gpu, change("%s.correctable", of)));
	aer_file(dir, "aer_dev_nonfatal", uncorrectable, "TOTAL_ERR_NONFATAL", number_of(s, gpu, change("%s.nonfatal", of)));
	aer_file(dir, "aer_dev_fatal", uncorrectable, "TOTAL_ERR_FATAL", number_of(s, gpu, change("%s.fatal", of)));
}

static void config(const struct scenario *s, int gpu, const char *dir) {
	unsigned char bytes[256] = {0xde, 0x10};
	unsigned id = (unsigned)number_of(s, gpu, "pci.device");
	bool lost = flag_of(s, gpu, "lost");
	bytes[2] = (unsigned char)id, bytes[3] = (unsigned char)(id >> 8);
	bytes[8] = 0xa1, bytes[10] = 2, bytes[11] = 3;
	if (lost) memset(bytes, 0xff, sizeof bytes); // what a device that is not there answers
	char *path = change("%s/root/%s/config", scenario_dir(), dir);
	FILE *f = fopen(path, "we");
	if (!f || fwrite(bytes, sizeof bytes, 1, f) != 1 || fclose(f)) fail("%s: %m", path);
}

// The port above a card, and the directory of the card in it.
static char *port(const struct scenario *s, int gpu) {
	struct address a = address_of(s, gpu);
	const char *said = text_of(s, gpu, "pcie.slot");
	char *root = change("sys/devices/pci%04x:%02x", a.domain, (a.bus - 1) & 0xff);
	if (!strcmp(said, "none")) return root;
	char *name = *said ? change("%s", said) : change("%04x:%02x:01.0", a.domain, (a.bus - 1) & 0xff);
	char *dir = change("%s/%s", root, name);
	file("0x8086\n", "%s/vendor", dir);
	file("0x352a\n", "%s/device", dir);
	file("0x060400\n", "%s/class", dir);
	file("DRIVER=pcieport\nPCI_CLASS=60400\nPCI_ID=8086:352A\n", "%s/uevent", dir);
	unsigned slot = (unsigned)number_of(s, gpu, "pcie.slot.gen"), card = (unsigned)number_of(s, gpu, "pcie.gen");
	link_files(dir, slot < card ? slot : card, slot, (int)number_of(s, gpu, "pcie.width"), (int)number_of(s, gpu, "pcie.slot.width"));
	aer(s, gpu, "slot.aer", dir);
	link_to(change("../../../%s", dir + strlen("sys/")), "sys/bus/pci/devices/%s", name);
	return dir;
}

void pci_update(const struct scenario *s, int gpu, bool driver) {
	struct address a = address_of(s, gpu);
	char *name = change("%04x:%02x:%02x.0", a.domain, a.bus, a.device), *dir = change("%s/%s", port(s, gpu), name);
	if (flag_of(s, gpu, "absent")) {
		gone("sys/bus/pci/devices/%s", name);
		return gone("%s", dir);
	}
	bool lost = flag_of(s, gpu, "lost");
	unsigned subsystem = (unsigned)number_of(s, gpu, "pci.subsystem");
	bool asleep = number_of(s, gpu, "pcie.gen.idle") < number_of(s, gpu, "pcie.gen");
	file("0x10de\n", "%s/vendor", dir);
	file(change("0x%04x\n", (unsigned)number_of(s, gpu, "pci.device")), "%s/device", dir);
	file("0x030200\n", "%s/class", dir);
	file(change("0x%04x\n", subsystem & 0xffff), "%s/subsystem_vendor", dir);
	file(change("0x%04x\n", subsystem >> 16), "%s/subsystem_device", dir);
	unsigned now = (unsigned)number_of(s, gpu, asleep ? "pcie.gen.idle" : "pcie.gen"), most = (unsigned)number_of(s, gpu, "pcie.gen.card");
	link_files(dir, lost ? 0 : now, lost ? 0 : most, lost ? 63 : (int)number_of(s, gpu, "pcie.width"), lost ? 255 : (int)number_of(s, gpu, "pcie.width.max"));
	aer(s, gpu, "aer", dir);
	file(change("%d\n", (int)number_of(s, gpu, "numa")), "%s/numa_node", dir);
	file(change("%s\n", text_of(s, gpu, "cpus")), "%s/local_cpulist", dir);
	file(lost ? "0xff\n" : "0xa1\n", "%s/revision", dir);
	file("1\n", "%s/enable", dir);
	config(s, gpu, dir);
	const char *bound = text_of(s, gpu, "pci.driver");
	bool unbound = !strcmp(bound, "none") || (!strcmp(bound, "nvidia") && !driver);
	if (unbound) gone("%s/driver", dir);
	else link_to(change("/sys/bus/pci/drivers/%s", bound), "%s/driver", dir);
	file(change("%s%s%sPCI_CLASS=30200\nPCI_ID=10DE:%04X\nPCI_SLOT_NAME=%s\n", unbound ? "" : "DRIVER=", unbound ? "" : bound,
		unbound ? "" : "\n", (unsigned)number_of(s, gpu, "pci.device"), name), "%s/uevent", dir);
	link_to(change("../../../%s", dir + strlen("sys/")), "sys/bus/pci/devices/%s", name);
}

void nvswitches_update(const struct scenario *s) {
	for (int i = 0; i < (int)number_of(s, NODE, "nvswitches"); i++) {
		char *name = change("0000:%02x:00.0", 5 + i), *dir = change("sys/devices/pci0000:00/%s", name);
		file("0x10de\n", "%s/vendor", dir);
		file("0x22a3\n", "%s/device", dir);
		file("0x068000\n", "%s/class", dir);
		file("DRIVER=nvidia-nvswitch\nPCI_CLASS=68000\nPCI_ID=10DE:22A3\n", "%s/uevent", dir);
		link_to("/sys/bus/pci/drivers/nvidia-nvswitch", "%s/driver", dir);
		link_to(change("../../../%s", dir + strlen("sys/")), "sys/bus/pci/devices/%s", name);
		device("dev/nvidia-nvswitch%d", i);
	}
}
