// What the files of gpu-sim share.
#ifndef TOOL_H
#define TOOL_H

#include "sim.h"

void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
int gpu_argument(const struct scenario *s, const char *text);   // a GPU's place in the scenario, from its NVML index
const struct scenario *scenario_now(void);

struct state *node_lock(const struct scenario *s);              // the node's state, locked and up to date
void node_unlock(struct state *st);

// edit.c: changes of the scenario, each "key=value" or, to remove it, "key".
void edit(int changes, char **change);
char *change(const char *format, ...) __attribute__((format(printf, 1, 2)));

// kmsg.c: the kernel log.
void kernel_log(const char *text);
void xid(const struct scenario *s, int gpu, int code, const char *text);

void root_update(const struct scenario *s);                     // root.c: /proc, /sys and /dev as the scenario says
void file(const char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));      // a file below the root, written if it differs
void link_to(const char *target, const char *format, ...) __attribute__((format(printf, 2, 3)));
void device(const char *format, ...) __attribute__((format(printf, 1, 2)));
void gone(const char *format, ...) __attribute__((format(printf, 1, 2)));                        // with all that is in it

struct address { unsigned domain, bus, device; };
struct address address_of(const struct scenario *s, int gpu);
void pci_update(const struct scenario *s, int gpu, bool driver); // pci.c
void nvswitches_update(const struct scenario *s);
void host_update(const struct scenario *s);                     // host.c
int load_main(int argc, char **argv);                           // load.c: a workload

#endif
