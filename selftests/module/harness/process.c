// SPDX-License-Identifier: GPL-2.0
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"
#include "why.h"

int wait_for(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

void kill_and_wait(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

pid_t keeper(int (*make)(void *arg), void *arg)
{
	int ready[2];
	pid_t pid;
	char c;

	if (pipe(ready))
		return because("pipe: %m");
	pid = fork();
	if (pid < 0)
		because("fork: %m");
	if (!pid) {
		if (make(arg))
			fprintf(stderr, "# %s\n", why());
		else if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	if (pid > 0 && read(ready[0], &c, 1) != 1) {
		wait_for(pid);
		pid = because("another process cannot make what it should");
	}
	close(ready[0]);
	return pid;
}

int do_as(uid_t user, int (*prepare)(void), int (*what)(void *arg), void *arg)
{
	pid_t pid = fork();
	int code;

	if (pid < 0)
		return because("fork: %m");
	if (!pid) {
		if (user && become(user))
			_exit(2);
		if (prepare && prepare())
			_exit(3);
		_exit(!!what(arg));
	}
	code = wait_for(pid);
	return code ? because("who does it as %u ended with %d", user, code) : 0;
}

int become(uid_t user)
{
	if (syscall(SYS_setgroups, 0, NULL) || setgid(user) || setuid(user))
		return -1;
	return 0;
}

int drop_net_admin(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -1;
	data[0].effective &= ~(1U << CAP_NET_ADMIN);
	return syscall(SYS_capset, &header, data);
}

int own_network(void)
{
	return unshare(CLONE_NEWNET);
}

int own_namespaces(void)
{
	return unshare(CLONE_NEWUSER | CLONE_NEWNET);
}
