// SPDX-License-Identifier: GPL-2.0
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

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
