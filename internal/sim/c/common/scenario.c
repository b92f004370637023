// The scenario file: lines of `key = value`, later lines win, gpu.N wins over
// gpu.*, and what no line says has the default of the key table (keys.inc).
#include "sim.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct { const char *key, *value; } defaults[] = {
#define KEY(key, type, value) { key, value },
#include "keys.inc"
#undef KEY
};
enum { DEFAULTS = sizeof defaults / sizeof *defaults };

static char dir_[PATH_MAX], file_[PATH_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct scenario *current;
static int64_t looked, trusted; // when, monotonic, and for how long

void scenario_locate(const char *dir, int64_t trust) {
	trusted = trust;
	snprintf(dir_, sizeof dir_, "%s", dir);
	snprintf(file_, sizeof file_, "%s/scenario", dir);
}

const char *scenario_dir(void) { return dir_; }

double scenario_parse_number(const char *text) {
	if (!strcmp(text, "true") || !strcmp(text, "yes") || !strcmp(text, "on")) return 1;
	char *end;
	double v = strtod(text, &end);
	while (*end == ' ') end++;
	switch (end[0] && end[1] == 'i' ? end[0] : 0) {
	case 'K': return v * 1024;
	case 'M': return v * 1024 * 1024;
	case 'G': return v * 1024 * 1024 * 1024;
	case 'T': return v * 1024 * 1024 * 1024 * 1024;
	}
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) return (double)strtoull(text, NULL, 16);
	return v;
}

int64_t scenario_parse_duration(const char *text) {
	char *end;
	double v = strtod(text, &end);
	if (!strncmp(end, "us", 2)) return (int64_t)(v * 1e3);
	if (!strncmp(end, "ms", 2)) return (int64_t)(v * 1e6);
	if (!strncmp(end, "m", 1)) return (int64_t)(v * 60e9);
	if (!strncmp(end, "h", 1)) return (int64_t)(v * 3600e9);
	return (int64_t)(v * 1e9);
}

static unsigned hash(int gpu, const char *name) {
	unsigned h = 2166136261u + (unsigned)gpu * 31;
	for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
	return h;
}

static struct entry *find(const struct scenario *s, int gpu, const char *name) {
	unsigned i = hash(gpu, name) & s->mask;
	while (s->table[i].name && (s->table[i].gpu != gpu || strcmp(s->table[i].name, name))) i = (i + 1) & s->mask;
	return &s->table[i];
}

static void set(struct scenario *s, const char *key, const char *value) {
	int gpu = NODE;
	const char *name = key;
	if (!strncmp(key, "gpu.", 4)) {
		const char *rest = strchr(key + 4, '.');
		if (!rest) return;
		gpu = isdigit((unsigned char)key[4]) ? atoi(key + 4) : EVERY_GPU;
		name = rest + 1;
	}
	struct entry *e = find(s, gpu, name);
	*e = (struct entry){gpu, name, value, scenario_parse_number(value), !strcmp(value, "none")};
	if (strstr(name, "call.") == name) s->faults = true;
}

static char *trim(char *from, char *to) {
	while (from < to && isspace((unsigned char)*from)) from++;
	while (to > from && isspace((unsigned char)to[-1])) to--;
	*to = 0;
	return from;
}

static struct scenario *parse(char *text, struct stamp stamp) {
	unsigned lines = DEFAULTS + 1, size = 64;
	for (char *p = text; *p; p++) lines += *p == '\n';
	while (size < 2 * lines) size *= 2;
	struct scenario *s = calloc(1, sizeof *s);
	*s = (struct scenario){.stamp = stamp, .references = 1, .mask = size - 1, .text = text};
	s->table = calloc(size, sizeof *s->table);
	for (int i = 0; i < DEFAULTS; i++)
		if (*defaults[i].value) set(s, defaults[i].key, defaults[i].value);
	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		char *end = next ? next++ : line + strlen(line);
		char *equals = memchr(line, '=', (size_t)(end - line));
		if (!equals || *trim(line, equals) == '#' || *line == '#') continue;
		char *key = trim(line, equals);
		set(s, key, trim(equals + 1, end));
	}
	s->gpus = (int)number_of(s, NODE, "gpus");
	if (s->gpus > MAX_GPUS) s->gpus = MAX_GPUS;
	return s;
}

static struct scenario *load(struct stamp stamp) {
	int fd = open(file_, O_RDONLY | O_CLOEXEC);
	if (fd < 0) return NULL;
	char *text = malloc((size_t)stamp.size + 1);
	ssize_t n = read(fd, text, (size_t)stamp.size);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return parse(text, stamp);
}

static bool stamp_of_file(struct stamp *stamp) {
	struct stat st;
	if (stat(file_, &st)) return false;
	*stamp = (struct stamp){st.st_mtim.tv_sec * NS + st.st_mtim.tv_nsec, (int64_t)st.st_ino, st.st_size};
	return true;
}

bool scenario_is_current(const struct scenario *s) {
	struct stamp stamp;
	return stamp_of_file(&stamp) && !memcmp(&stamp, &s->stamp, sizeof stamp);
}

const struct scenario *scenario_acquire(void) {
	pthread_mutex_lock(&lock);
	int64_t now = monotonic();
	bool there = current && now - looked < trusted;
	struct stamp stamp;
	if (!there && stamp_of_file(&stamp)) {
		there = true;
		looked = now;
		struct scenario *fresh = current && !memcmp(&current->stamp, &stamp, sizeof stamp) ? NULL : load(stamp);
		if (fresh) {
			struct scenario *old = current;
			current = fresh;
			if (old && --old->references == 0) { free(old->text); free(old->table); free(old); }
		}
	}
	struct scenario *s = there ? current : NULL;
	if (s) s->references++;
	pthread_mutex_unlock(&lock);
	return s;
}

void scenario_release(const struct scenario *s) {
	if (!s) return;
	struct scenario *mine = (struct scenario *)s;
	pthread_mutex_lock(&lock);
	if (--mine->references == 0) { free(mine->text); free(mine->table); free(mine); }
	pthread_mutex_unlock(&lock);
}

const struct entry *scenario_exact(const struct scenario *s, int gpu, const char *name) {
	const struct entry *e = find(s, gpu, name);
	return e->name ? e : NULL;
}

const struct entry *scenario_get(const struct scenario *s, int gpu, const char *name) {
	const struct entry *e = scenario_exact(s, gpu, name);
	if (!e && gpu >= 0) e = scenario_exact(s, EVERY_GPU, name);
	return e;
}

const char *text_of(const struct scenario *s, int gpu, const char *name) {
	const struct entry *e = scenario_get(s, gpu, name);
	return e ? e->text : "";
}

double number_of(const struct scenario *s, int gpu, const char *name) {
	const struct entry *e = scenario_get(s, gpu, name);
	return e ? e->number : 0;
}

bool flag_of(const struct scenario *s, int gpu, const char *name) { return number_of(s, gpu, name) != 0; }

bool lacks(const struct scenario *s, int gpu, const char *name) {
	const struct entry *e = scenario_get(s, gpu, name);
	return !e || e->none;
}

static const struct entry *get_at(const struct scenario *s, int gpu, const char *format, int i) {
	char name[96];
	snprintf(name, sizeof name, format, i);
	const struct entry *e = scenario_get(s, gpu, name);
	if (e) return e;
	const char *percent = strstr(format, "%d");
	snprintf(name, sizeof name, "%.*s*%s", (int)(percent - format), format, percent + 2);
	return scenario_get(s, gpu, name);
}

double number_at(const struct scenario *s, int gpu, const char *format, int i) {
	const struct entry *e = get_at(s, gpu, format, i);
	return e ? e->number : 0;
}

const char *text_at(const struct scenario *s, int gpu, const char *format, int i) {
	const struct entry *e = get_at(s, gpu, format, i);
	return e ? e->text : "";
}

// One `name=value` of a comma-separated list.
static bool attribute(const char *list, const char *name, char *out, size_t size) {
	size_t n = strlen(name);
	for (const char *p = list; p && *p; p = strchr(p, ','), p = p ? p + 1 : NULL) {
		while (*p == ' ') p++;
		if (!strncmp(p, name, n) && p[n] == '=') {
			snprintf(out, size, "%.*s", (int)strcspn(p + n + 1, ", "), p + n + 1);
			return true;
		}
	}
	return false;
}

struct instance instance_of(const struct scenario *s, int gpu, int slot) {
	struct instance m = {0};
	char name[16], v[96];
	snprintf(name, sizeof name, "mig.%d", slot);
	const struct entry *e = scenario_get(s, gpu, name);
	if (!e || e->none || !flag_of(s, gpu, "mig.mode")) return m;
	m.exists = true;
	if (attribute(e->text, "gi", v, sizeof v)) m.gi = (unsigned)atoi(v);
	if (attribute(e->text, "ci", v, sizeof v)) m.ci = (unsigned)atoi(v);
	attribute(e->text, "profile", m.profile, sizeof m.profile);
	attribute(e->text, "uuid", m.uuid, sizeof m.uuid);
	const char *g = strchr(m.profile, 'g');
	const char *c = strchr(m.profile, 'c');
	m.slices = c ? (unsigned)atoi(c + 2) : (unsigned)atoi(m.profile);
	m.ci_slices = c ? (unsigned)atoi(m.profile) : m.slices;
	if (attribute(e->text, "start", v, sizeof v)) m.start = (unsigned)atoi(v);
	double slices = number_of(s, gpu, "mig.memory_slices");
	double total = number_of(s, gpu, "memory.total");
	double gb = g ? atof(g + 2) : 0;
	m.size = attribute(e->text, "size", v, sizeof v) ? (unsigned)atoi(v) : (unsigned)(gb * (1 << 30) / (total / slices) + 0.5);
	m.memory = attribute(e->text, "memory", v, sizeof v) ? (uint64_t)scenario_parse_number(v) : (uint64_t)(total / slices * m.size);
	m.sms = (unsigned)(m.ci_slices * number_of(s, gpu, "mig.sms_per_slice"));
	m.fraction = m.sms / number_of(s, gpu, "sms");
	return m;
}

// NVML counts only the GPUs that are there.
int gpu_of_index(const struct scenario *s, unsigned index) {
	for (int g = 0; g < s->gpus; g++)
		if (!flag_of(s, g, "absent") && index-- == 0) return g;
	return -1;
}

int index_of_gpu(const struct scenario *s, int gpu) {
	int index = 0;
	for (int g = 0; g < gpu; g++) index += !flag_of(s, g, "absent");
	return flag_of(s, gpu, "absent") ? -1 : index;
}
