/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sends lines to a peer, who prints them, by DAT 1.2:
 *     dapx-example-dat12 dapx-rxe1                    on one host
 *     dapx-example-dat12 dapx-rxe0 10.0.0.2 <FILE     on another
 * It needs no libdat2: cc dat12.c -ldat
 */
#include <arpa/inet.h>
#include <dat/udat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT 7704
#define LINE 256
#define LINES 16
#define SECOND 1000000

static char lines[LINES][LINE];
static DAT_EVD_HANDLE async_evd, conn_evd, dto_evd;
static DAT_LMR_CONTEXT context;
static DAT_EP_HANDLE ep;
static DAT_IA_HANDLE ia;

static void must(const char *what, DAT_RETURN code)
{
	const char *type = "?", *subtype = "?";

	if (code == DAT_SUCCESS)
		return;
	dat_strerror(code, &type, &subtype);
	exit((fprintf(stderr, "%s: %s %s\n", what, type, subtype), 1));
}

static DAT_EVENT wait_for(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	must("dat_evd_wait", dat_evd_wait(evd, 60 * SECOND, 1, &event, &more));
	return event;
}

static DAT_LMR_TRIPLET line(unsigned int i, size_t length)
{
	DAT_LMR_TRIPLET triplet = {
		.lmr_context = context,
		.virtual_address = (DAT_VADDR)(size_t)lines[i],
		.segment_length = length,
	};

	return triplet;
}

static void post_receive(unsigned int i)
{
	DAT_LMR_TRIPLET where = line(i, LINE);
	DAT_DTO_COOKIE cookie = { .as_64 = i };

	must("dat_ep_post_recv",
	     dat_ep_post_recv(ep, 1, &where, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static void set_up(char *name)
{
	DAT_REGION_DESCRIPTION region = { .for_va = lines };
	DAT_RMR_CONTEXT unused;
	DAT_LMR_HANDLE lmr;
	DAT_PZ_HANDLE pz;
	DAT_VADDR address;
	DAT_VLEN size;

	must("dat_ia_open", dat_ia_open(name, 8, &async_evd, &ia));
	must("dat_pz_create", dat_pz_create(ia, &pz));
	must("dat_evd_create",
	     dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG,
			    &conn_evd));
	must("dat_evd_create",
	     dat_evd_create(ia, 2 * LINES, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &dto_evd));
	must("dat_ep_create", dat_ep_create(ia, pz, dto_evd, dto_evd, conn_evd, NULL, &ep));
	must("dat_lmr_create",
	     dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(lines), pz,
			    DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &lmr,
			    &context, &unused, &size, &address));
}

static void print_lines(void)
{
	DAT_DTO_COMPLETION_EVENT_DATA *done;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	unsigned int i;

	for (i = 0; i < LINES; i++)
		post_receive(i);
	must("dat_psp_create", dat_psp_create(ia, PORT, conn_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	fprintf(stderr, "listens\n");
	event = wait_for(conn_evd);
	must("dat_cr_accept",
	     dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL));
	for (;;) {
		event = wait_for(dto_evd);
		done = &event.event_data.dto_completion_event_data;
		if (done->status != DAT_DTO_SUCCESS)
			break; /* flushed: the peer has ended the connection */
		i = done->user_cookie.as_64;
		printf("%.*s", (int)done->transfered_length, lines[i]);
		post_receive(i);
	}
}

static void send_lines(const char *host)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr(host) };
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_LMR_TRIPLET what;

	must("dat_ep_connect",
	     dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&address, PORT, 60 * SECOND, 0, NULL,
			    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	if (wait_for(conn_evd).event_number != DAT_CONNECTION_EVENT_ESTABLISHED)
		exit((fprintf(stderr, "no connection\n"), 1));
	while (fgets(lines[0], LINE, stdin)) {
		what = line(0, strlen(lines[0]));
		must("dat_ep_post_send",
		     dat_ep_post_send(ep, 1, &what, cookie, DAT_COMPLETION_DEFAULT_FLAG));
		if (wait_for(dto_evd).event_data.dto_completion_event_data.status)
			exit((fprintf(stderr, "the peer is gone\n"), 1));
	}
	must("dat_ep_disconnect", dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	wait_for(conn_evd);
}

int main(int argc, char **argv)
{
	if (argc != 2 && argc != 3)
		return fprintf(stderr, "usage: dapx-example-dat12 IA [ADDRESS] <FILE\n"), 2;
	set_up(argv[1]);
	argc == 3 ? send_lines(argv[2]) : print_lines();
	must("dat_ia_close", dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}
