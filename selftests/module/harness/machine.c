// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine.h"
#include "why.h"

bool on_siw(void)
{
	const char *rdma = getenv("RDMA");

	return rdma && !strcmp(rdma, "siw");
}

bool on_debug_kernel(void)
{
	const char *kernel = getenv("DAPX_KERNEL");

	return kernel && !strcmp(kernel, "debug");
}

static void set_cpus(unsigned long mask)
{
	cpu_set_t cpus;
	int i;

	CPU_ZERO(&cpus);
	for (i = 0; i < 8 * (int)sizeof(mask); i++)
		if (mask & 1UL << i)
			CPU_SET(i, &cpus);
	/* With one CPU only there is less to see. */
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

void run_on(int cpu)
{
	set_cpus(1UL << cpu);
}

void run_anywhere(void)
{
	set_cpus(~0UL);
}

const char *read_line(const char *path)
{
	static char line[256];
	ssize_t got;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	got = read(fd, line, sizeof(line) - 1);
	close(fd);
	if (got < 0)
		return NULL;
	line[got] = 0;
	line[strcspn(line, "\n")] = 0;
	return line;
}

int write_line(const char *path, const char *text)
{
	ssize_t put;
	int fd;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return because("open %s: %m", path);
	put = write(fd, text, strlen(text));
	close(fd);
	if (put != (ssize_t)strlen(text))
		return because("write %s to %s: %m", text, path);
	return 0;
}

#define PREEMPT "/sys/kernel/debug/sched/preempt"
#define WORKERS "/sys/devices/virtual/workqueue/cpumask"

int processor_share(struct processor *before)
{
	const struct sched_param first = { .sched_priority = 1 };
	const char *line;

	run_on(0);
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		return because("scheduler: %m");
	/* "none (voluntary) full"; some kernels know one model only. */
	line = read_line(PREEMPT);
	line = line ? strchr(line, '(') : NULL;
	if (line && sscanf(line, "(%31[^)]", before->preempt) == 1 && write_line(PREEMPT, "full"))
		return -1;
	line = read_line(WORKERS);
	if (!line)
		return because("%s: %m", WORKERS);
	snprintf(before->workers, sizeof(before->workers), "%s", line);
	return write_line(WORKERS, "1");
}

int processor_put_back(const struct processor *before)
{
	int ret = 0;

	if (*before->preempt)
		ret = write_line(PREEMPT, before->preempt);
	if (*before->workers)
		ret = write_line(WORKERS, before->workers) ?: ret;
	return ret;
}

long module_parameter(const char *name)
{
	char path[128];
	const char *line;

	snprintf(path, sizeof(path), "/sys/module/dapx/parameters/%s", name);
	line = read_line(path);
	return line ? strtol(line, NULL, 0) : -1;
}

int set_module_parameter(const char *name, long value)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "/sys/module/dapx/parameters/%s", name);
	snprintf(text, sizeof(text), "%ld", value);
	return write_line(path, text);
}

int run(const char *format, ...)
{
	char command[512];
	va_list args;
	int status;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	strncat(command, " >/dev/null 2>&1",
		sizeof(command) - strlen(command) - 1);
	status = system(command);
	if (status)
		because("'%s' ended with %d", command, status);
	return status;
}

int cgroup_make(const char *controllers)
{
	mkdir(CGROUP, 0755);
	if (access(CGROUP "/cgroup.procs", F_OK) &&
	    mount("none", CGROUP, "cgroup2", 0, NULL))
		return because("mount of cgroup2: %m");
	if (write_line(CGROUP "/cgroup.subtree_control", controllers))
		return -1;
	mkdir(CGROUP "/dapx", 0755);
	return 0;
}

int cgroup_enter(const char *controllers)
{
	char text[64];

	if (cgroup_make(controllers))
		return -1;
	snprintf(text, sizeof(text), "%d", getpid());
	return write_line(CGROUP "/dapx/cgroup.procs", text);
}

void cgroup_leave(const char *device)
{
	char text[128];

	/*
	 * The kernel forgets a pool that has a limit when its cgroup goes, and
	 * stumbles over it when the device goes.
	 */
	snprintf(text, sizeof(text), "%s hca_object=max", device);
	if (!access(CGROUP "/dapx/rdma.max", F_OK))
		write_line(CGROUP "/dapx/rdma.max", text);
	snprintf(text, sizeof(text), "%d", getpid());
	write_line(CGROUP "/cgroup.procs", text);
	rmdir(CGROUP "/dapx");
}

long pinned_pages(void)
{
	unsigned long acquired = 0, released = 0;
	char line[128];
	FILE *file;

	write_line("/proc/sys/vm/stat_refresh", "1");
	file = fopen("/proc/vmstat", "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "nr_foll_pin_acquired %lu", &acquired) != 1 &&
		    sscanf(line, "nr_foll_pin_released %lu", &released) == 1)
			break;
	}
	if (file)
		fclose(file);
	return acquired - released;
}
