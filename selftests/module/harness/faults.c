// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "faults.h"
#include "machine.h"
#include "why.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define DEBUGFS "/sys/kernel/debug"

static const char * const faults[] = {
	"failslab", "fail_page_alloc", "fail_usercopy",
	/* None below the module: or the C library's locks would fail. */
	"fail_futex",
};

struct text {
	unsigned long start;
	unsigned long end;
};

/* From the module's first function to behind its last. */
static int module_text(struct text *text)
{
	char line[256], type, module[64], name[128];
	FILE *file = fopen("/proc/kallsyms", "r");
	unsigned long address;

	text->start = ~0UL;
	text->end = 0;
	if (!file)
		return because("/proc/kallsyms: %m");
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx %c %127s %63s", &address, &type, name,
			   module) != 4 || strcmp(module, "[dapx]") ||
		    (type != 't' && type != 'T') || !address ||
		    !strcmp(name, "init_module") ||
		    !strncmp(name, "__", 2))
			continue;
		if (address < text->start)
			text->start = address;
		if (address > text->end)
			text->end = address;
	}
	fclose(file);
	if (!text->end)
		return because("/proc/kallsyms shows no functions of dapx");
	/* No function is longer. */
	text->end += 4096;
	return 0;
}

static int set_fault(const char *fault, const char *knob, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), DEBUGFS "/%s/%s", fault, knob);
	return write_line(path, value);
}

int faults_limit_to_module(void)
{
	struct text text;
	char number[32];
	int i;

	if (access(DEBUGFS "/failslab", F_OK))
		mount("none", DEBUGFS, "debugfs", 0, NULL);
	if (module_text(&text))
		return -1;
	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		snprintf(number, sizeof(number), "0x%lx", text.start);
		if (set_fault(faults[i], "require-start", number))
			return -1;
		snprintf(number, sizeof(number), "0x%lx", text.end);
		if (set_fault(faults[i], "require-end", number) ||
		    set_fault(faults[i], "stacktrace-depth", "32") ||
		    set_fault(faults[i], "verbose", "0"))
			return -1;
		if (i < 2 && set_fault(faults[i], "ignore-gfp-wait", "N"))
			return -1;
	}
	return set_fault("fail_page_alloc", "min-order", "0");
}

int nth_open(struct nth *nth)
{
	nth->fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	return nth->fd < 0 ? because("/proc/thread-self/fail-nth: %m") : 0;
}

int nth_arm(struct nth *nth)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", nth->n);

	return pwrite(nth->fd, text, length, 0) == length ? 0 : -1;
}

bool nth_disarm(struct nth *nth)
{
	char text[16] = {};
	ssize_t got = pread(nth->fd, text, sizeof(text) - 1, 0);
	bool hit = got < 0 || !strcmp(text, "0\n");

	while (pwrite(nth->fd, "0", 1, 0) != 1)
		hit = true;
	return hit;
}
