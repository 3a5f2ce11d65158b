// SPDX-License-Identifier: GPL-2.0
/*
 * XRC domains: who shares one, who makes it, and what it keeps.
 */
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/dice.h"
#include "harness/fabric.h"
#include "harness/machine.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 600

#define CREATE DAPX_XRCD_CREATE
#define EXCL (DAPX_XRCD_CREATE | DAPX_XRCD_EXCL)

FIXTURE(xrcd)
{
	struct host a;
	struct host b;
	char folder[32];	/* a tmpfs of its own */
	char name[64];
	char other[64];
	int file;
};

FIXTURE_SETUP(xrcd)
{
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	snprintf(self->folder, sizeof(self->folder), "/tmp/xrcd.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->folder));
	ASSERT_EQ(0, mount("none", self->folder, "tmpfs", 0, NULL));
	snprintf(self->name, sizeof(self->name), "%s/job", self->folder);
	snprintf(self->other, sizeof(self->other), "%s/other", self->folder);
	self->file = open(self->name, O_RDWR | O_CREAT, 0600);
	ASSERT_LE(0, self->file);
}

FIXTURE_TEARDOWN(xrcd)
{
	close(self->file);
	host_close(&self->a);
	host_close(&self->b);
	/* A domain that is left over would keep it. */
	EXPECT_EQ(0, umount(self->folder))
		TH_LOG("umount: %s", strerror(errno));
	umount2(self->folder, MNT_DETACH);
	rmdir(self->folder);
}

/* 0 or an errno. */
static int xrcd_open(int context, int fd, __u32 flags, __u32 *xrcd)
{
	struct dapx_xrcd_open cmd = { .fd = fd, .flags = flags };

	if (_test_cmd_xrcd_open(context, &cmd))
		return errno;
	if (xrcd)
		*xrcd = cmd.out_xrcd;
	return 0;
}

static int xrcd_close(int context, __u32 xrcd)
{
	struct dapx_free cmd = { .handle = xrcd, .type = DAPX_OBJECT_XRCD };

	return _test_cmd_free(context, &cmd) ? errno : 0;
}

/* Whether a domain of this file is there. */
static bool there_is(int context, int fd)
{
	__u32 xrcd;

	if (xrcd_open(context, fd, 0, &xrcd))
		return false;
	xrcd_close(context, xrcd);
	return true;
}

/* ---- what is asked for, and what one gets ---- */

TEST_F(xrcd, of_a_file)
{
	__u32 first, second;

	EXPECT_EQ(ENOENT, xrcd_open(self->a.fd, self->file, 0, NULL));
	EXPECT_EQ(0, xrcd_open(self->a.fd, self->file, EXCL, &first));
	EXPECT_EQ(EEXIST, xrcd_open(self->a.fd, self->file, EXCL, NULL));
	EXPECT_EQ(0, xrcd_open(self->a.fd, self->file, CREATE, &second));
	EXPECT_NE(first, second);
	/* Each open has an end of its own. */
	EXPECT_EQ(0, xrcd_close(self->a.fd, first));
	EXPECT_EQ(ENOENT, xrcd_close(self->a.fd, first));
	EXPECT_TRUE(there_is(self->a.fd, self->file));
	EXPECT_EQ(0, xrcd_close(self->a.fd, second));
	EXPECT_FALSE(there_is(self->a.fd, self->file));
	EXPECT_EQ(0, xrcd_open(self->a.fd, self->file, CREATE, &first));
	EXPECT_EQ(0, xrcd_close(self->a.fd, first));
}

TEST_F(xrcd, of_nobody_else)
{
	__u32 first, second;

	EXPECT_EQ(0, xrcd_open(self->a.fd, -1, CREATE, &first));
	EXPECT_EQ(0, xrcd_open(self->a.fd, -1, CREATE, &second));
	EXPECT_NE(first, second);
	EXPECT_FALSE(there_is(self->a.fd, self->file));
	EXPECT_EQ(EINVAL, xrcd_open(self->a.fd, -1, 0, NULL));
	EXPECT_EQ(EINVAL, xrcd_open(self->a.fd, -1, EXCL, NULL));
	EXPECT_EQ(EINVAL, xrcd_open(self->a.fd, -1, DAPX_XRCD_EXCL, NULL));
	EXPECT_EQ(0, xrcd_close(self->a.fd, first));
	EXPECT_EQ(0, xrcd_close(self->a.fd, second));
}

static void wrong_flags(struct __test_metadata *_metadata, int context, int fd)
{
	unsigned int bit;

	EXPECT_EQ(EINVAL, xrcd_open(context, fd, DAPX_XRCD_EXCL, NULL));
	for (bit = 2; bit < 32; bit++) {
		EXPECT_EQ(EOPNOTSUPP, xrcd_open(context, fd, 1U << bit, NULL));
		EXPECT_EQ(EOPNOTSUPP,
			  xrcd_open(context, fd, 1U << bit | CREATE, NULL));
	}
}

TEST_F(xrcd, flags)
{
	__u32 xrcd;

	wrong_flags(_metadata, self->a.fd, -1);
	wrong_flags(_metadata, self->a.fd, self->file);
	EXPECT_FALSE(there_is(self->a.fd, self->file));
	EXPECT_EQ(0, xrcd_open(self->a.fd, self->file, CREATE, &xrcd));
	wrong_flags(_metadata, self->a.fd, self->file);
	EXPECT_EQ(0, xrcd_close(self->a.fd, xrcd));
}

/* Descriptors of which many share one inode name nothing. */
TEST_F(xrcd, of_what_is_no_regular_file)
{
	int fds[2], fd;

	ASSERT_EQ(0, pipe(fds));
	EXPECT_EQ(EINVAL, xrcd_open(self->a.fd, fds[1], CREATE, NULL));
	close(fds[0]);
	close(fds[1]);
	EXPECT_EQ(EBADF, xrcd_open(self->a.fd, fds[1], CREATE, NULL));
	EXPECT_EQ(EBADF, xrcd_open(self->a.fd, -2, CREATE, NULL));
	fd = eventfd(0, 0);
	EXPECT_EQ(EINVAL, xrcd_open(self->a.fd, fd, CREATE, NULL));
	close(fd);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	EXPECT_EQ(EINVAL, xrcd_open(self->a.fd, fd, CREATE, NULL));
	close(fd);
	fd = open(self->folder, O_RDONLY);
	EXPECT_EQ(EINVAL, xrcd_open(self->a.fd, fd, CREATE, NULL));
	close(fd);
	fd = open("/dev/null", O_RDWR);
	EXPECT_EQ(EINVAL, xrcd_open(self->a.fd, fd, CREATE, NULL));
	close(fd);
	EXPECT_EQ(EINVAL, xrcd_open(self->a.fd, self->a.fd, CREATE, NULL));
	fd = open(self->name, O_PATH);
	EXPECT_EQ(EBADF, xrcd_open(self->a.fd, fd, CREATE, NULL));
	close(fd);
}

/* It is who may write that counts, not how the descriptor was opened. */
TEST_F(xrcd, rights)
{
	int reader = open(self->name, O_RDONLY);
	__u32 xrcd;

	ASSERT_LE(0, reader);
	EXPECT_EQ(0, xrcd_open(self->a.fd, reader, EXCL, &xrcd));
	EXPECT_EQ(0, xrcd_close(self->a.fd, xrcd));
	ASSERT_EQ(0, fchmod(self->file, 0644));
	ASSERT_EQ(0, seteuid(65534));
	EXPECT_EQ(EACCES, xrcd_open(self->a.fd, self->file, CREATE, NULL));
	EXPECT_EQ(EACCES, xrcd_open(self->a.fd, reader, 0, NULL));
	ASSERT_EQ(0, seteuid(0));
	EXPECT_FALSE(there_is(self->a.fd, self->file));
	ASSERT_EQ(0, fchmod(self->file, 0666));
	ASSERT_EQ(0, seteuid(65534));
	EXPECT_EQ(0, xrcd_open(self->a.fd, reader, EXCL, &xrcd));
	ASSERT_EQ(0, seteuid(0));
	EXPECT_EQ(0, xrcd_close(self->a.fd, xrcd));
	close(reader);
}

/* ibv_xsrq_pingpong and perftest make the file with 0440, and open it for reading. */
TEST_F(xrcd, rights_of_the_owner)
{
	int reader = open(self->name, O_RDONLY);
	__u32 xrcd;

	ASSERT_LE(0, reader);
	ASSERT_EQ(0, fchown(self->file, 65534, 65534));
	ASSERT_EQ(0, fchmod(self->file, 0440));
	ASSERT_EQ(0, seteuid(65533));
	EXPECT_EQ(EACCES, xrcd_open(self->a.fd, reader, CREATE, NULL));
	ASSERT_EQ(0, seteuid(0));
	EXPECT_FALSE(there_is(self->a.fd, self->file));
	ASSERT_EQ(0, seteuid(65534));
	EXPECT_EQ(0, xrcd_open(self->a.fd, reader, EXCL, &xrcd));
	ASSERT_EQ(0, seteuid(0));
	EXPECT_EQ(0, xrcd_close(self->a.fd, xrcd));
	close(reader);
}

/* What may be written elsewhere, but not by way of this mount. */
TEST_F(xrcd, rights_of_a_mount)
{
	char path[64];
	int reader;

	snprintf(path, sizeof(path), "%s/mount", self->folder);
	ASSERT_EQ(0, mkdir(path, 0700));
	ASSERT_EQ(0, mount(self->folder, path, NULL, MS_BIND, NULL));
	snprintf(path, sizeof(path), "%s/mount/job", self->folder);
	reader = open(path, O_RDONLY);
	EXPECT_EQ(0, xrcd_open(self->a.fd, reader, CREATE, NULL));
	/* By the other mount it is the same file. */
	EXPECT_EQ(EEXIST, xrcd_open(self->a.fd, self->file, EXCL, NULL));
	snprintf(path, sizeof(path), "%s/mount", self->folder);
	ASSERT_EQ(0, mount(NULL, path, NULL,
			   MS_BIND | MS_REMOUNT | MS_RDONLY, NULL));
	EXPECT_EQ(EACCES, xrcd_open(self->a.fd, reader, 0, NULL));
	EXPECT_TRUE(there_is(self->a.fd, self->file));
	close(self->file);
	self->file = -1;
	host_close(&self->a);
	ASSERT_EQ(0, mount(NULL, self->folder, NULL, MS_REMOUNT | MS_RDONLY,
			   NULL));
	EXPECT_EQ(EACCES, xrcd_open(self->b.fd, reader, CREATE, NULL));
	close(reader);
	EXPECT_EQ(0, umount(path));
}

/* ---- what names one domain ---- */

TEST_F(xrcd, by_any_name)
{
	int link_, renamed, new;
	__u32 xrcd;

	EXPECT_EQ(0, xrcd_open(self->a.fd, self->file, EXCL, &xrcd));
	ASSERT_EQ(0, link(self->name, self->other));
	link_ = open(self->other, O_RDWR);
	EXPECT_EQ(EEXIST, xrcd_open(self->a.fd, link_, EXCL, NULL));
	ASSERT_EQ(0, unlink(self->name));
	close(self->file);
	EXPECT_TRUE(there_is(self->a.fd, link_));
	/* A new file of the old name is another one. */
	new = open(self->name, O_RDWR | O_CREAT | O_EXCL, 0600);
	ASSERT_LE(0, new);
	EXPECT_FALSE(there_is(self->a.fd, new));
	ASSERT_EQ(0, rename(self->other, self->name));
	renamed = open(self->name, O_RDWR);
	EXPECT_TRUE(there_is(self->a.fd, renamed));
	EXPECT_FALSE(there_is(self->a.fd, new));
	/* And without any name. */
	ASSERT_EQ(0, unlink(self->name));
	EXPECT_TRUE(there_is(self->a.fd, renamed));
	EXPECT_EQ(0, xrcd_close(self->a.fd, xrcd));
	EXPECT_FALSE(there_is(self->a.fd, renamed));
	close(link_);
	close(renamed);
	close(new);
	self->file = -1;
}

/* A file that nobody can get at any more; those made since are not it. */
TEST_F(xrcd, of_no_later_file)
{
	char path[64];
	__u32 xrcd;
	int fd, i;

	EXPECT_EQ(0, xrcd_open(self->a.fd, self->file, EXCL, &xrcd));
	close(self->file);
	self->file = -1;
	ASSERT_EQ(0, unlink(self->name));
	/* Many, so that some share a bucket with it. */
	for (i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "%s/%d", self->folder, i);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
		ASSERT_LE(0, fd);
		EXPECT_FALSE(there_is(self->a.fd, fd));
		close(fd);
	}
	EXPECT_EQ(0, xrcd_close(self->a.fd, xrcd));
}

TEST_F(xrcd, of_memory)
{
	int fd = memfd_create("job", MFD_CLOEXEC), again;
	char path[32];
	__u32 xrcd;

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, xrcd_open(self->a.fd, fd, EXCL, &xrcd));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR);
	ASSERT_LE(0, again);
	close(fd);
	EXPECT_EQ(EEXIST, xrcd_open(self->a.fd, again, EXCL, NULL));
	EXPECT_EQ(0, xrcd_close(self->a.fd, xrcd));
	EXPECT_FALSE(there_is(self->a.fd, again));
	close(again);
}

TEST_F(xrcd, of_an_overlay)
{
	char options[256], path[64];
	int over, under;
	__u32 xrcd;

	ASSERT_EQ(0, run("cd %s && mkdir low up work all && echo >low/job",
			 self->folder));
	snprintf(options, sizeof(options),
		 "lowerdir=%1$s/low,upperdir=%1$s/up,workdir=%1$s/work",
		 self->folder);
	snprintf(path, sizeof(path), "%s/all", self->folder);
	if (mount("none", path, "overlay", 0, options))
		SKIP(return, "no overlayfs: %s", strerror(errno));
	snprintf(path, sizeof(path), "%s/all/job", self->folder);
	over = open(path, O_RDONLY);
	EXPECT_EQ(0, xrcd_open(self->a.fd, over, EXCL, &xrcd));
	close(over);
	/* An overlay's inode is in memory only: the domain has to keep it. */
	ASSERT_EQ(0, run("echo 2 >/proc/sys/vm/drop_caches"));
	/* Written to, it moves to the upper layer, and stays the same file. */
	over = open(path, O_RDWR);
	EXPECT_EQ(1, write(over, "x", 1));
	EXPECT_EQ(EEXIST, xrcd_open(self->a.fd, over, EXCL, NULL));
	snprintf(path, sizeof(path), "%s/low/job", self->folder);
	under = open(path, O_RDWR);
	EXPECT_FALSE(there_is(self->a.fd, under));
	close(under);
	close(over);
	snprintf(path, sizeof(path), "%s/all", self->folder);
	EXPECT_EQ(-1, umount(path));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(0, xrcd_close(self->a.fd, xrcd));
	EXPECT_EQ(0, umount(path));
}

TEST_F(xrcd, of_a_device)
{
	__u32 on_a, on_b;

	EXPECT_EQ(0, xrcd_open(self->a.fd, self->file, EXCL, &on_a));
	EXPECT_FALSE(there_is(self->b.fd, self->file));
	EXPECT_EQ(0, xrcd_open(self->b.fd, self->file, EXCL, &on_b));
	EXPECT_EQ(0, xrcd_close(self->a.fd, on_a));
	EXPECT_FALSE(there_is(self->a.fd, self->file));
	EXPECT_TRUE(there_is(self->b.fd, self->file));
	EXPECT_EQ(0, xrcd_close(self->b.fd, on_b));
}

static int pass(int socket_, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {
		.header = {
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int)),
		},
	};
	struct iovec iov = { .iov_base = "", .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(socket_, &message, 0) == 1 ? 0 : -1;
}

static int passed(int socket_)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = (char[1]) {}, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int fd;

	if (recvmsg(socket_, &message, 0) != 1)
		return -1;
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}

/* A process that has it from another, by no name that it knows. */
TEST_F(xrcd, of_a_descriptor_that_was_passed)
{
	int ends[2], status;
	__u32 xrcd;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	EXPECT_EQ(0, xrcd_open(self->a.fd, self->file, EXCL, &xrcd));
	pid = fork();
	if (!pid) {
		struct host own;
		int fd;

		close(self->file);
		if (host_open(&own, 0) || host_attach(&own))
			_exit(1);
		fd = passed(ends[1]);
		_exit(!(xrcd_open(own.fd, fd, EXCL, NULL) == EEXIST &&
			!xrcd_open(own.fd, fd, 0, NULL)));
	}
	OK(pass(ends[0], self->file));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	/* Its reference went with it, ours did not. */
	EXPECT_TRUE(there_is(self->a.fd, self->file));
	EXPECT_EQ(0, xrcd_close(self->a.fd, xrcd));
	EXPECT_FALSE(there_is(self->a.fd, self->file));
	close(ends[0]);
	close(ends[1]);
}

/* ---- what it keeps, and for how long ---- */

TEST_F(xrcd, keeps_the_file_system)
{
	__u32 xrcd;

	EXPECT_EQ(0, xrcd_open(self->a.fd, self->file, EXCL, &xrcd));
	close(self->file);
	self->file = -1;
	ASSERT_EQ(0, unlink(self->name));
	EXPECT_EQ(-1, umount(self->folder));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(0, xrcd_close(self->a.fd, xrcd));
	EXPECT_EQ(0, umount(self->folder));
	ASSERT_EQ(0, mount("none", self->folder, "tmpfs", 0, NULL));
}

/* Not what an open file keeps: others wait for the end of that. */
TEST_F(xrcd, keeps_no_open_file)
{
	int fd = open(self->name, O_RDWR);
	__u32 xrcd;

	EXPECT_EQ(0, xrcd_open(self->a.fd, fd, EXCL, &xrcd));
	close(fd);
	close(self->file);
	self->file = open(self->name, O_RDONLY);
	/* Refused while anybody has it open for writing. */
	EXPECT_EQ(0, fcntl(self->file, F_SETLEASE, F_RDLCK))
		TH_LOG("F_SETLEASE: %s", strerror(errno));
	EXPECT_EQ(0, xrcd_close(self->a.fd, xrcd));
}

TEST_F(xrcd, goes_with_its_process)
{
	int ready[2], status;
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	if (!pid) {
		struct host own;

		if (host_open(&own, 0) || host_attach(&own) ||
		    xrcd_open(own.fd, self->file, EXCL, NULL) ||
		    xrcd_open(own.fd, self->file, 0, NULL) ||
		    xrcd_open(own.fd, -1, CREATE, NULL))
			_exit(1);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	ASSERT_EQ(1, read(ready[0], &c, 1));
	EXPECT_TRUE(there_is(self->a.fd, self->file));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_FALSE(there_is(self->a.fd, self->file));
	close(ready[0]);
	close(ready[1]);
}

TEST_F(xrcd, goes_with_its_device)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	struct host again;
	int kept;

	EXPECT_EQ(0, xrcd_open(self->a.fd, self->file, EXCL, NULL));
	OK(device_remove(&self->a));
	EXPECT_EQ(EIO, xrcd_open(self->a.fd, self->file, 0, NULL));
	close(self->file);
	self->file = -1;
	/* The context is open yet, and lets go of the file system soon after its device. */
	while ((kept = umount(self->folder)) && errno == EBUSY && now_ns() < deadline)
		sleep_ms(1);
	EXPECT_EQ(0, kept);
	ASSERT_EQ(0, mount("none", self->folder, "tmpfs", 0, NULL));
	OK(device_add(&self->a));
	OK(host_open(&again, 0));
	OK(host_attach(&again));
	EXPECT_EQ(0, xrcd_open(again.fd, -1, CREATE, NULL));
	host_close(&again);
}

/* ---- of a file system that is a process ---- */

#define ITS_FOLDER 1
#define ITS_FILE 2

/* With one file, which has any name. */
struct fuse {
	char folder[32];
	int fd;
	pthread_t thread;
	atomic_bool silent;		/* when it is asked for attributes */
	atomic_ullong waits;		/* the request that it did not answer; 0: none */
};

static void fuse_answer(struct fuse *fuse, __u64 unique, int error, const void *data, size_t size)
{
	struct {
		struct fuse_out_header header;
		char data[sizeof(struct fuse_entry_out)];
	} out = {
		.header = { .len = sizeof(out.header) + size, .error = -error, .unique = unique },
	};

	memcpy(out.data, data, size);
	/* Of a request that was given up nobody wants to hear. */
	if (write(fuse->fd, &out, out.header.len) < 0 && errno != ENOENT)
		perror("# /dev/fuse");
}

static struct fuse_attr fuse_attr(__u64 node)
{
	return (struct fuse_attr) {
		.ino = node,
		.mode = node == ITS_FOLDER ? S_IFDIR | 0755 : S_IFREG | 0600,
		.nlink = 1,
	};
}

/* Attributes are valid for no time: who checks rights asks for them. */
static void fuse_answer_attr(struct fuse *fuse, __u64 unique, __u64 node)
{
	struct fuse_attr_out out = { .attr = fuse_attr(node) };

	fuse_answer(fuse, unique, 0, &out, sizeof(out));
}

static void fuse_serve(struct fuse *fuse, const struct fuse_in_header *in)
{
	static const struct fuse_init_out init = { .major = 7, .minor = 31, .max_write = 4096 };
	const struct fuse_open_out opened = {};
	const struct fuse_entry_out entry = {
		.nodeid = ITS_FILE, .entry_valid = 3600, .attr = fuse_attr(ITS_FILE),
	};

	switch (in->opcode) {
	case FUSE_INIT:
		fuse_answer(fuse, in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		fuse_answer(fuse, in->unique, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		if (fuse->silent)
			fuse->waits = in->unique;
		else
			fuse_answer_attr(fuse, in->unique, in->nodeid);
		break;
	case FUSE_OPEN:
		fuse_answer(fuse, in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_RELEASE:
	case FUSE_FLUSH:
		fuse_answer(fuse, in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		fuse_answer(fuse, in->unique, EOPNOTSUPP, NULL, 0);
		break;
	}
}

/* Until it is unmounted. */
static void *fuse_serves(void *arg)
{
	static char request[FUSE_MIN_READ_BUFFER + 4096];
	struct fuse *fuse = arg;

	while (read(fuse->fd, request, sizeof(request)) > 0)
		fuse_serve(fuse, (struct fuse_in_header *)request);
	return NULL;
}

static int fuse_mount(struct fuse *fuse)
{
	char options[96];

	snprintf(fuse->folder, sizeof(fuse->folder), "/tmp/fuse.XXXXXX");
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,default_permissions", fuse->fd);
	if (!mkdtemp(fuse->folder) || mount("dapx", fuse->folder, "fuse", 0, options) ||
	    pthread_create(&fuse->thread, NULL, fuse_serves, fuse))
		return because("fuse: %m");
	return 0;
}

static void fuse_umount(struct fuse *fuse)
{
	umount2(fuse->folder, MNT_DETACH);
	pthread_join(fuse->thread, NULL);
	rmdir(fuse->folder);
	close(fuse->fd);
}

struct opener {
	int context;
	int file;
	int error;
};

static void *opens(void *arg)
{
	struct opener *opener = arg;

	opener->error = xrcd_open(opener->context, opener->file, CREATE, NULL);
	return NULL;
}

static void *removes(void *arg)
{
	atomic_int *done = arg;
	struct host host;

	host_open(&host, 0);
	*done = device_remove(&host) ? -1 : 1;
	host_close(&host);
	return NULL;
}

/* Who opens a domain waits for it alone, and in vain when the device has gone. */
TEST_F(xrcd, of_a_file_system_that_does_not_answer)
{
	struct opener opener = { .context = self->a.fd };
	__u64 deadline = in_ms(PATIENCE_MS);
	pthread_t opening, removing;
	struct fuse fuse = {};
	atomic_int removed = 0;
	char name[64];

	fuse.fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse.fd < 0)
		SKIP(return, "this kernel has no FUSE");
	OK(fuse_mount(&fuse));
	snprintf(name, sizeof(name), "%s/job", fuse.folder);
	opener.file = open(name, O_RDWR);
	ASSERT_LE(0, opener.file);
	fuse.silent = true;
	ASSERT_EQ(0, pthread_create(&opening, NULL, opens, &opener));
	while (!fuse.waits && now_ns() < deadline)
		sleep_ms(1);
	ASSERT_NE(0, fuse.waits);
	ASSERT_EQ(0, pthread_create(&removing, NULL, removes, &removed));
	deadline = in_ms(PATIENCE_MS);
	while (!removed && now_ns() < deadline)
		sleep_ms(1);
	EXPECT_EQ(1, removed) TH_LOG("%s", why());
	fuse.silent = false;
	fuse_answer_attr(&fuse, fuse.waits, ITS_FILE);
	ASSERT_EQ(0, pthread_join(opening, NULL));
	ASSERT_EQ(0, pthread_join(removing, NULL));
	EXPECT_EQ(EIO, opener.error);
	close(opener.file);
	fuse_umount(&fuse);
	OK(device_add(&self->a));
}

/* ---- many at once ---- */

#define RACERS 64

struct race {
	pthread_barrier_t start, end;
	atomic_uint winners, losers, others;
};

static struct race *race_begin(void)
{
	struct race *race = mmap(NULL, sizeof(*race), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t shared;

	if (race == MAP_FAILED)
		return NULL;
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&race->start, &shared, RACERS + 1);
	pthread_barrier_init(&race->end, &shared, RACERS + 1);
	return race;
}

/* Opens exclusively in each round; with @hasty, closes in its midst. */
static void race_along(struct race *race, int file, unsigned int rounds,
		       bool hasty)
{
	struct host own;
	__u32 xrcd;
	int ret;

	if (host_open(&own, 0) || host_attach(&own))
		_exit(1);
	while (rounds--) {
		pthread_barrier_wait(&race->start);
		ret = xrcd_open(own.fd, file, EXCL, &xrcd);
		if (!ret) {
			race->winners++;
			if (hasty && xrcd_close(own.fd, xrcd))
				race->others++;
		} else if (ret == EEXIST) {
			race->losers++;
		} else {
			race->others++;
		}
		pthread_barrier_wait(&race->end);
		if (!ret && !hasty && xrcd_close(own.fd, xrcd))
			race->others++;
		pthread_barrier_wait(&race->end);
	}
	_exit(0);
}

static void race_over(struct __test_metadata *_metadata, int context, int file,
		      bool hasty)
{
	unsigned int n = count(50, 1000), round, i;
	struct race *race = race_begin();
	pid_t pids[RACERS];
	int status;

	ASSERT_NE(NULL, race);
	TH_LOG("%u rounds of %u processes", n, RACERS);
	for (i = 0; i < RACERS; i++) {
		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		if (!pids[i])
			race_along(race, file, n, hasty);
	}
	for (round = 0; round < n; round++) {
		race->winners = 0;
		race->losers = 0;
		pthread_barrier_wait(&race->start);
		pthread_barrier_wait(&race->end);
		EXPECT_EQ(RACERS, race->winners + race->losers);
		EXPECT_LE(1, race->winners);
		EXPECT_GE(hasty ? RACERS : 1, race->winners);
		pthread_barrier_wait(&race->end);
	}
	EXPECT_EQ(0, race->others);
	for (i = 0; i < RACERS; i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		EXPECT_EQ(0, status);
	}
	EXPECT_FALSE(there_is(context, file));
	munmap(race, sizeof(*race));
}

TEST_F(xrcd, one_of_many_makes_it)
{
	race_over(_metadata, self->a.fd, self->file, false);
}

TEST_F(xrcd, one_of_many_makes_it_while_others_close)
{
	race_over(_metadata, self->a.fd, self->file, true);
}

TEST_HARNESS_MAIN
