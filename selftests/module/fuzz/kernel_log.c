// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <regex.h>
#include <stdlib.h>
#include <unistd.h>

#include "../harness/clock.h"
#include "../harness/machine.h"
#include "../harness/why.h"
#include "kernel_log.h"

#define MARK "dapx-fuzz begins"
/* Operations in a line of the log. */
#define LINE_OPS 24

static int fd;
static regex_t faults;
static char log_check[512];

/* What a fault looks like stands in log-check. */
static int read_faults(void)
{
	const char *top = getenv("DAPX_TOP");
	char command[640], text[4096] = "";
	FILE *pipe;

	snprintf(log_check, sizeof(log_check), "%s/selftests/vm/log-check", top ?: ".");
	snprintf(command, sizeof(command), "%s --patterns", log_check);
	pipe = popen(command, "r");
	if (!pipe)
		return because("%s: %m", command);
	text[fread(text, 1, sizeof(text) - 1, pipe)] = 0;
	pclose(pipe);
	if (!*text || regcomp(&faults, text, REG_EXTENDED | REG_NOSUB))
		return because("%s prints no patterns", log_check);
	return 0;
}

int kernel_log_open(void)
{
	if (read_faults())
		return -1;
	/* Otherwise the kernel takes ten lines in five seconds. */
	if (write_line("/proc/sys/kernel/printk_devkmsg", "on\n"))
		return -1;
	fd = open("/dev/kmsg", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return because("/dev/kmsg: %m");
	lseek(fd, 0, SEEK_END);
	return write(fd, MARK, strlen(MARK)) < 0 ? because("/dev/kmsg: %m") : 0;
}

void kernel_log_program(const struct program *program)
{
	char line[64 + LINE_OPS * 2 * sizeof(struct op)];
	unsigned int at, i, n;
	const uint8_t *bytes;
	int length;

	for (at = 0; at < program->length; at += n) {
		n = program->length - at < LINE_OPS ? program->length - at : LINE_OPS;
		/* Level 3 reaches the console, whose log outlives the machine. */
		length = sprintf(line, "<3>%s", at ? PROGRAM_GOES_ON : PROGRAM_BEGINS);
		bytes = (const uint8_t *)&program->ops[at];
		for (i = 0; i < n * sizeof(struct op); i++)
			length += sprintf(line + length, "%02x", bytes[i]);
		if (write(fd, line, length) < 0)
			return;
	}
}

bool kernel_log_has_fault(void)
{
	char line[2048];
	bool suspect = false;
	ssize_t got;

	for (;;) {
		got = read(fd, line, sizeof(line) - 1);
		if (got < 0 && errno == EPIPE)
			continue;
		if (got <= 0)
			break;
		line[got] = 0;
		if (!regexec(&faults, line, 0, NULL, 0))
			suspect = true;
	}
	if (!suspect)
		return false;
	/* log-check knows reports that are not dapx' own by the rest of them. */
	sleep_ms(1000);
	return run("dmesg | %s '%s'", log_check, MARK);
}
