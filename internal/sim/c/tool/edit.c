// Editing the scenario: checked against the key table, replaced atomically,
// and the counters brought up to date before and after, so that what was true
// until now is integrated until now.
#include "tool.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const struct { const char *key, *type; } keys[] = {
#define KEY(key, type, value) { key, type },
#include "keys.inc"
#undef KEY
};

// Does a key of the table (with * for what varies) stand for this one?
static bool stands_for(const char *pattern, const char *key) {
	for (; *pattern; pattern++) {
		if (*pattern != '*') {
			if (*pattern != *key++) return false;
			continue;
		}
		if (*key == '*') key++;
		else if (!isalnum((unsigned char)*key)) return false;
		else while (isalnum((unsigned char)*key) || *key == '_') key++;
	}
	return !*key;
}

static void check_value(const char *key, const char *type, const char *value) {
	static const char *const numeric[] = {"number", "ratio", "counter", "size", "watt", "celsius", "mhz"};
	if (!strcmp(value, "none") || !*value) return;
	if (!strcmp(type, "switch") && !strstr(" true false yes no on off 1 0 ", change(" %s ", value)))
		fail("%s: %s is neither true nor false", key, value);
	for (size_t i = 0; i < sizeof numeric / sizeof *numeric; i++)
		if (!strcmp(type, numeric[i]) && !isdigit((unsigned char)value[0]) && value[0] != '.' && value[0] != '-')
			fail("%s: %s is not a number", key, value);
}

static void check(const struct scenario *s, const char *key, const char *value) {
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		if (!stands_for(keys[i].key, key)) continue;
		if (!strncmp(key, "gpu.", 4) && key[4] != '*' && (!isdigit((unsigned char)key[4]) || atoi(key + 4) >= s->gpus))
			fail("%s: the scenario has %d GPUs", key, s->gpus);
		if (value) check_value(key, keys[i].type, value);
		return;
	}
	fail("%s: unknown key", key);
}

char *change(const char *format, ...) {
	char *text;
	va_list args;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0) abort();
	va_end(args);
	return text;
}

static char *read_all(const char *path) {
	FILE *f = fopen(path, "re");
	if (!f) fail("%s: %m", path);
	char *text = NULL;
	size_t size = 0;
	if (getdelim(&text, &size, 0, f) < 0) text = calloc(1, 1);
	fclose(f);
	return text;
}

static bool line_is(const char *line, const char *key, size_t length) {
	while (isblank((unsigned char)*line)) line++;
	if (strncmp(line, key, length)) return false;
	line += length;
	while (isblank((unsigned char)*line)) line++;
	return *line == '=';
}

// The text without any line of this key.
static void remove_key(char *text, const char *key, size_t length) {
	char *to = text;
	for (char *line = text, *next; *line; line = next) {
		next = strchrnul(line, '\n');
		if (*next) next++;
		if (line_is(line, key, length)) continue;
		memmove(to, line, (size_t)(next - line));
		to += next - line;
	}
	*to = 0;
}

void edit(int changes, char **list) {
	char path[PATH_MAX + 16], draft[PATH_MAX + 32];
	snprintf(path, sizeof path, "%s/scenario.lock", scenario_dir());
	int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (lock < 0) fail("%s: %m", path);
	flock(lock, LOCK_EX);

	const struct scenario *before = scenario_now();
	node_unlock(node_lock(before));
	snprintf(path, sizeof path, "%s/scenario", scenario_dir());
	snprintf(draft, sizeof draft, "%s/.scenario.%d", scenario_dir(), getpid());
	char *text = read_all(path);
	for (int i = 0; i < changes; i++) {
		size_t length = strcspn(list[i], "=");
		const char *value = list[i][length] ? list[i] + length + 1 : NULL;
		char *key = strndup(list[i], length);
		check(before, key, value);
		remove_key(text, key, length);
		if (value) text = change("%s%s%s = %s\n", text, *text && text[strlen(text) - 1] != '\n' ? "\n" : "", key, value);
	}
	FILE *f = fopen(draft, "we");
	if (!f || fputs(text, f) < 0 || fclose(f) || rename(draft, path)) fail("%s: %m", draft);

	const struct scenario *after = scenario_now();
	struct state *st = node_lock(after);
	bool reloaded = !flag_of(before, NODE, "driver.loaded") && flag_of(after, NODE, "driver.loaded");
	for (int g = 0; reloaded && g < after->gpus; g++) state_reset_gpu(st, g); // a driver counts from its load
	node_unlock(st);
	root_update(after);
	close(lock);
}
