// SPDX-License-Identifier: GPL-2.0
/*
 * An endpoint whose peer is a program that knows nothing of dapx: ibv_rc_pingpong
 * of libibverbs, connected by queue pair numbers, and rping of librdmacm.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/machine.h"
#include "harness/xrc.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300

/* What both programs take, given nothing else. */
#define PINGPONG_PORT 18515
#define PINGPONG_SIZE 4096
/* What its memory is full of at first. */
#define PINGPONG_BYTE 0x7b

/* Each message that ibv_rc_pingpong sends over TCP: LID, QP number, PSN, GID. */
#define PINGPONG_WIRE "0000:000000:000000:00000000000000000000000000000000"

/* Each message of rping: a buffer that the peer is to read, or to write. */
struct rping_info {
	__be64 addr;
	__be32 rkey;
	__be32 size;
};

/* Where in the host's memory which data lie. */
#define SEND_AT 0
#define RECV_AT 8192
#define SOURCE_AT 16384
#define SINK_AT 32768

FIXTURE(peer)
{
	struct host host;
	struct ep ep;
	pid_t program;
	char output[32];
};

FIXTURE_SETUP(peer)
{
	self->program = 0;
	snprintf(self->output, sizeof(self->output), "/tmp/interop-XXXXXX");
	close(mkstemp(self->output));
	OK(host_set_up(&self->host, 0));
	OK(ep_create(&self->host, &self->ep));
}

FIXTURE_TEARDOWN(peer)
{
	if (self->program > 0) {
		kill(self->program, SIGKILL);
		waitpid(self->program, NULL, 0);
	}
	unlink(self->output);
	ep_forget(&self->ep);
	host_close(&self->host);
}

static pid_t start(const char *output, char *const arguments[])
{
	pid_t pid = fork();
	int fd;

	if (pid)
		return pid;
	fd = open(output, O_WRONLY | O_TRUNC);
	dup2(fd, 1);
	dup2(fd, 2);
	execvp(arguments[0], arguments);
	_exit(127);
}

/* Its exit code, 255 after a signal; -1 if it does not end. */
static int end_of(pid_t *program)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	int status;

	while (now_ns() < deadline) {
		if (waitpid(*program, &status, WNOHANG) == *program) {
			*program = 0;
			return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
		}
		sleep_ms(10);
	}
	return -1;
}

/* How often the program said this. */
static unsigned int said(const char *output, const char *what)
{
	FILE *file = fopen(output, "r");
	unsigned int count = 0;
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		count += !!strstr(line, what);
	if (file)
		fclose(file);
	return count;
}

static struct sockaddr_in tcp_address(const char *ip)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(PINGPONG_PORT),
	};

	inet_pton(AF_INET, ip, &address.sin_addr);
	return address;
}

/* To a program that may not listen yet. */
static int tcp_connect(const char *ip)
{
	struct sockaddr_in address = tcp_address(ip);
	__u64 deadline = in_ms(PATIENCE_MS);
	int fd;

	while (now_ns() < deadline) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
			return fd;
		close(fd);
		sleep_ms(20);
	}
	return because("nobody listens on port %u", PINGPONG_PORT);
}

static int tcp_listen(const char *ip)
{
	struct sockaddr_in address = tcp_address(ip);
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(fd, 1))
		return because("cannot listen: %m");
	return fd;
}

static int tell_where(int fd, const struct host *host, const struct ep *ep)
{
	char text[sizeof(PINGPONG_WIRE)];
	__u8 gid[16];
	int length, i;

	if (host_gid_index(host, gid) < 0)
		return -1;
	/* PSNs start at 0. */
	length = snprintf(text, sizeof(text), "%04x:%06x:%06x:", 0, ep->qp_num, 0);
	for (i = 0; i < 16; i++)
		length += snprintf(text + length, sizeof(text) - length, "%02x",
				   gid[i]);
	if (write(fd, text, sizeof(text)) != sizeof(text))
		return because("cannot tell the program: %m");
	return 0;
}

/* Reads where the program's queue pair is, and takes the endpoint to RTS. */
static int connect_where_told(int fd, const struct host *host, struct ep *ep)
{
	struct dapx_ep_modify cmd = {
		.ep = ep->handle,
		.mask = DAPX_EP_MODIFY_QP,
		.qp.state = DAPX_QP_RTR,
		.qp.hop_limit = 64,
		.qp.min_rnr_timer = 1,
		.qp.max_dest_rd_atomic = 1,
		.qp.path_mtu = 3,
	};
	unsigned int lid, qp_num, psn, byte, i;
	char text[sizeof(PINGPONG_WIRE)];
	size_t got = 0;
	ssize_t ret;
	__u8 gid[16];

	while (got < sizeof(text)) {
		ret = read(fd, text + got, sizeof(text) - got);
		if (ret <= 0)
			return because("the program hung up");
		got += ret;
	}
	text[sizeof(text) - 1] = 0;
	if (sscanf(text, "%x:%x:%x:", &lid, &qp_num, &psn) != 3)
		return because("the program said \"%s\"", text);
	for (i = 0; i < 16; i++) {
		if (sscanf(text + 19 + 2 * i, "%2x", &byte) != 1)
			return because("the program said \"%s\"", text);
		cmd.qp.dgid[i] = byte;
	}
	cmd.qp.dest_qp_num = qp_num;
	cmd.qp.rq_psn = psn;
	cmd.qp.sgid_index = host_gid_index(host, gid);
	if (qp_init(ep))
		return -1;
	if (_test_cmd_ep_modify(host->fd, &cmd))
		return because("DAPX_EP_MODIFY to RTR: %m");
	return qp_rts(ep, NULL);
}

/* The bytes of a message, which are others in each. */
static void fill(__u8 *data, unsigned int message)
{
	unsigned int i;

	for (i = 0; i < PINGPONG_SIZE; i++)
		data[i] = message * 31 + i * 7 + (i >> 8) + 1;
}

static int take_message(struct host *host, struct ep *ep, __u64 wr_id,
			const __u8 expected[PINGPONG_SIZE])
{
	struct dapx_event event;
	unsigned int i;

	if (expect_completion(&host->recv, wr_id, DAPX_STATUS_SUCCESS, &event))
		return -1;
	if (event.completion.byte_len != PINGPONG_SIZE)
		return because("%u bytes", event.completion.byte_len);
	for (i = 0; i < PINGPONG_SIZE; i++)
		if (host->mem[RECV_AT + i] != expected[i])
			return because("message %llu: byte %u is 0x%02x instead of 0x%02x",
				       wr_id, i, host->mem[RECV_AT + i],
				       expected[i]);
	memset(host->mem + RECV_AT, 0, PINGPONG_SIZE);
	return ep_recv(ep, wr_id + 1, RECV_AT, PINGPONG_SIZE);
}

static int give_message(struct host *host, struct ep *ep, __u64 wr_id,
			const __u8 data[PINGPONG_SIZE])
{
	memcpy(host->mem + SEND_AT, data, PINGPONG_SIZE);
	if (ep_send(ep, wr_id, SEND_AT, PINGPONG_SIZE))
		return -1;
	return expect_completion(&host->done, wr_id, DAPX_STATUS_SUCCESS, NULL);
}

/* Both programs run on the other device, where the test has no endpoint. */
static int program_gid_index(void)
{
	struct host other = { .device = "rxe1", .addr = "10.0.0.2" };
	__u8 gid[16];

	return host_gid_index(&other, gid);
}

/* What is awaited of the program over TCP must come, or the call fails. */
static void be_patient(int fd)
{
	struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
}

TEST_F(peer, ibv_rc_pingpong_serves)
{
	char iterations[16], gid_index[16];
	char *const arguments[] = { "ibv_rc_pingpong", "-d", "rxe1", "-g",
				    gid_index, "-n", iterations, "-e", NULL };
	unsigned int n = count(1000, 10000), i;
	__u8 data[PINGPONG_SIZE];
	int fd, index;

	if (on_siw())
		SKIP(return, "iWARP has no exchange of QP numbers");
	index = program_gid_index();
	ASSERT_LE(0, index) TH_LOG("%s", why());
	snprintf(gid_index, sizeof(gid_index), "%d", index);
	snprintf(iterations, sizeof(iterations), "%u", n);
	self->program = start(self->output, arguments);
	fd = tcp_connect("127.0.0.1");
	ASSERT_LE(0, fd) TH_LOG("%s", why());
	be_patient(fd);
	OK(ep_recv(&self->ep, 0, RECV_AT, PINGPONG_SIZE));
	OK(tell_where(fd, &self->host, &self->ep));
	OK(connect_where_told(fd, &self->host, &self->ep));
	ASSERT_EQ(5, write(fd, "done", 5));
	for (i = 0; i < n; i++) {
		/* It sends from where it receives: what comes is what went. */
		fill(data, i);
		OK(give_message(&self->host, &self->ep, i, data));
		OK(take_message(&self->host, &self->ep, i, data));
	}
	EXPECT_EQ(0, end_of(&self->program));
	EXPECT_EQ(1, said(self->output, "bytes in"));
	EXPECT_EQ(1, said(self->output, " iters in"));
	close(fd);
}

TEST_F(peer, ibv_rc_pingpong_calls)
{
	char iterations[16], gid_index[16];
	char *const arguments[] = { "ibv_rc_pingpong", "-d", "rxe1", "-g",
				    gid_index, "-n", iterations, "-e",
				    "127.0.0.1", NULL };
	unsigned int n = count(1000, 10000), i;
	__u8 data[PINGPONG_SIZE];
	int listening, fd, index;
	char done[5];

	if (on_siw())
		SKIP(return, "iWARP has no exchange of QP numbers");
	index = program_gid_index();
	ASSERT_LE(0, index) TH_LOG("%s", why());
	snprintf(gid_index, sizeof(gid_index), "%d", index);
	snprintf(iterations, sizeof(iterations), "%u", n);
	listening = tcp_listen("127.0.0.1");
	ASSERT_LE(0, listening) TH_LOG("%s", why());
	be_patient(listening);
	self->program = start(self->output, arguments);
	fd = accept(listening, NULL, NULL);
	ASSERT_LE(0, fd) TH_LOG("the program does not connect: %m");
	be_patient(fd);
	OK(ep_recv(&self->ep, 0, RECV_AT, PINGPONG_SIZE));
	OK(connect_where_told(fd, &self->host, &self->ep));
	OK(tell_where(fd, &self->host, &self->ep));
	EXPECT_EQ(5, read(fd, done, sizeof(done)));
	memset(data, PINGPONG_BYTE, sizeof(data));
	for (i = 0; i < n; i++) {
		/* Its own at first, then what it was sent before. */
		OK(take_message(&self->host, &self->ep, i, data));
		fill(data, i);
		OK(give_message(&self->host, &self->ep, i, data));
	}
	EXPECT_EQ(0, end_of(&self->program));
	EXPECT_EQ(1, said(self->output, "bytes in"));
	EXPECT_EQ(1, said(self->output, " iters in"));
	close(fd);
	close(listening);
}

static int rping_tell(struct host *host, struct ep *ep, __u64 wr_id, __u32 at,
		      __u32 size)
{
	struct rping_info info = {
		.addr = htobe64((uintptr_t)host->mem + at),
		.rkey = htobe32(host->rkey),
		.size = htobe32(size),
	};

	memcpy(host->mem + SEND_AT, &info, sizeof(info));
	if (ep_recv(ep, wr_id, RECV_AT, sizeof(info)) ||
	    ep_send(ep, wr_id, SEND_AT, sizeof(info)) ||
	    expect_completion(&host->done, wr_id, DAPX_STATUS_SUCCESS, NULL))
		return -1;
	/* The program has done it. */
	return expect_completion(&host->recv, wr_id, DAPX_STATUS_SUCCESS, NULL);
}

/* rping reads a text from here by RDMA, and writes it back to another place. */
TEST_F(peer, rping_serves)
{
	char *const arguments[] = { "rping", "-s", "-a", "10.0.0.2", "-p", "7174",
			      "-v", "-S", "1000", NULL };
	unsigned int n = count(20, 1000), size = 1000, round;
	struct listener program = { .host = &self->host, .port = 7174 };
	struct dapx_ep_connect cmd;
	struct dapx_event event;
	__u64 deadline = in_ms(PATIENCE_MS);

	self->program = start(self->output, arguments);
	for (;;) {
		connect_usual(&self->ep, &program, &cmd);
		set_addr(&cmd.dst, "10.0.0.2", 7174);
		ASSERT_EQ(0, _test_cmd_ep_connect(self->host.fd, &cmd));
		OK(evd_next(&self->host.conn, &event, PATIENCE_MS));
		ASSERT_EQ(DAPX_EVENT_CONNECTION, event.type);
		if (event.connection.what == DAPX_CONNECTION_ESTABLISHED)
			break;
		/* It does not listen yet. */
		ASSERT_GT(deadline, now_ns());
		test_cmd(ep_reset, self->host.fd, .ep = self->ep.handle);
		sleep_ms(50);
	}
	for (round = 0; round < n; round++) {
		__u8 *source = self->host.mem + SOURCE_AT;
		__u8 *sink = self->host.mem + SINK_AT;

		memset(source, 'a' + round % 26, size - 1);
		snprintf((char *)source, size, "rdma-ping-%u", round);
		source[strlen((char *)source)] = ' ';
		source[size - 1] = 0;
		memset(sink, 0x5c, size + 1);
		OK(rping_tell(&self->host, &self->ep, 2 * round, SOURCE_AT,
			      size));
		OK(rping_tell(&self->host, &self->ep, 2 * round + 1, SINK_AT,
			      size));
		ASSERT_EQ(0, memcmp(source, sink, size));
		ASSERT_EQ(0x5c, sink[size]);
	}
	test_cmd(ep_disconnect, self->host.fd, .ep = self->ep.handle);
	OK(expect_connection(&self->host.conn, self->ep.handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
	EXPECT_LE(0, end_of(&self->program));
	/* Its exit code lies; what it read does not. */
	EXPECT_EQ(n, said(self->output, "server ping data: rdma-ping-"));
}

/* XRC is not RC: a peer that would not understand it is told so before the first message. */
TEST_F(peer, xrc_is_not_for_others)
{
	char *const arguments[] = { "rping", "-s", "-a", "10.0.0.2", "-p", "7175", NULL };
	struct listener program = { .host = &self->host, .port = 7175 };
	struct dapx_ep_connect cmd;
	struct dapx_event event;
	__u64 deadline = in_ms(PATIENCE_MS);
	struct ep ep;

	OK(xrc_ep_create(&self->host, &ep));
	self->program = start(self->output, arguments);
	do {
		/* It does not listen yet. */
		ASSERT_GT(deadline, now_ns());
		connect_usual(&ep, &program, &cmd);
		set_addr(&cmd.dst, "10.0.0.2", 7175);
		ASSERT_EQ(0, _test_cmd_ep_connect(self->host.fd, &cmd));
		OK(evd_next(&self->host.conn, &event, PATIENCE_MS));
		ASSERT_EQ(DAPX_EVENT_CONNECTION, event.type);
		ASSERT_EQ(DAPX_CONNECTION_NON_PEER_REJECTED, event.connection.what);
		test_cmd(ep_reset, self->host.fd, .ep = ep.handle);
	} while (event.connection.error != -EPROTO);
	ep_forget(&ep);
}

/* Reads where the next buffer of the program is. */
static int rping_hear(struct host *host, __u64 wr_id, __u32 size,
		      struct rping_info *info)
{
	struct dapx_event event;

	if (expect_completion(&host->recv, wr_id, DAPX_STATUS_SUCCESS, &event))
		return -1;
	if (event.completion.byte_len != sizeof(*info))
		return because("%u bytes", event.completion.byte_len);
	memcpy(info, host->mem + RECV_AT, sizeof(*info));
	if (be32toh(info->size) != size)
		return because("a buffer of %u bytes", be32toh(info->size));
	return 0;
}

/*
 * The program leaves when it has the last one. By then its device may not have acknowledged it, or
 * siw not have noted that it was sent.
 */
static int rping_sent(struct host *host, __u64 wr_id, bool last)
{
	struct dapx_event event;

	if (!last)
		return expect_completion(&host->done, wr_id, DAPX_STATUS_SUCCESS, NULL);
	if (evd_next(&host->done, &event, PATIENCE_MS))
		return -1;
	if (event.type != DAPX_EVENT_COMPLETION || event.completion.wr_id != wr_id)
		return because("event %u, request %llu", event.type, event.completion.wr_id);
	if (event.completion.status != DAPX_STATUS_SUCCESS &&
	    event.completion.status != DAPX_STATUS_FLUSHED)
		return because("status %u", event.completion.status);
	return 0;
}

/* By RDMA, from or to the program's memory; then it is told to go on. */
static int rping_serve(struct host *host, struct ep *ep, __u64 wr_id,
		       __u8 opcode, __u32 at, const struct rping_info *info,
		       __u32 length, bool last)
{
	struct dapx_send_wr wr = {
		.wr_id = wr_id,
		.opcode = opcode,
		.num_sge = 1,
		.flags = DAPX_SEND_SIGNALED,
		.remote_addr = be64toh(info->addr),
		.rkey = be32toh(info->rkey),
	};
	struct dapx_sge sge = host_sge(host, at, length);

	if (ep_post_send(ep, &wr, &sge) ||
	    expect_completion(&host->done, wr_id, DAPX_STATUS_SUCCESS, NULL) ||
	    /* For what it says next. */
	    ep_recv(ep, wr_id + 1, RECV_AT, sizeof(*info)) ||
	    ep_send(ep, wr_id, SEND_AT, sizeof(*info)))
		return -1;
	return rping_sent(host, wr_id, last);
}

/* The roles swapped: its text is read from it, and written back. */
TEST_F(peer, rping_calls)
{
	char rounds[16], port[16];
	char *const arguments[] = { "rping", "-c", "-a", "10.0.0.1", "-I",
				    "10.0.0.2", "-p", port, "-v", "-V", "-S",
				    "1000", "-C", rounds, NULL };
	unsigned int n = count(20, 1000), size = 1000, round;
	struct rping_info info;
	struct listener listener;
	struct dapx_event event;
	char text[32];

	OK(listener_open(&self->host, &listener));
	snprintf(rounds, sizeof(rounds), "%u", n);
	snprintf(port, sizeof(port), "%u", listener.port);
	self->program = start(self->output, arguments);
	OK(listener_request(&listener, &event));
	OK(ep_recv(&self->ep, 0, RECV_AT, sizeof(info)));
	OK(ep_accept(&self->ep, event.request.cm));
	OK(expect_connection(&self->host.conn, self->ep.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	for (round = 0; round < n; round++) {
		char *data = (char *)self->host.mem + SINK_AT;

		memset(data, 0x5c, size + 1);
		OK(rping_hear(&self->host, 2 * round, size, &info));
		OK(rping_serve(&self->host, &self->ep, 2 * round,
			       DAPX_OP_RDMA_READ, SINK_AT, &info, size, false));
		snprintf(text, sizeof(text), "rdma-ping-%u: ", round);
		ASSERT_EQ(0, strncmp(data, text, strlen(text)));
		ASSERT_EQ(size - 1, strnlen(data, size));
		ASSERT_EQ(0x5c, data[size]);
		OK(rping_hear(&self->host, 2 * round + 1, size, &info));
		OK(rping_serve(&self->host, &self->ep, 2 * round + 1,
			       DAPX_OP_RDMA_WRITE, SINK_AT, &info, size,
			       round == n - 1));
	}
	OK(expect_connection(&self->host.conn, self->ep.handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
	EXPECT_LE(0, end_of(&self->program));
	/* It compared (-V) what came back, and printed it if it was the same. */
	EXPECT_EQ(n, said(self->output, "ping data: rdma-ping-"));
	EXPECT_EQ(0, said(self->output, "mismatch"));
}

TEST_HARNESS_MAIN
