/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lends memory to a peer by DAT 2.0, and takes it back:
 *     dapx-example-dat dapx-rxe1 lend             on one host
 *     dapx-example-dat dapx-rxe0 write 10.0.0.2   on another
 * The lines of dat.conf are written by dapxctl dat-conf.
 */
#include <arpa/inet.h>
#include <dat2/udat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT 7703
#define LENGTH 4096
#define SECOND 1000000

/* What the writer has to know of the memory; it comes with the answer to its request. */
struct lent {
	DAT_VADDR address;
	DAT_RMR_CONTEXT context;
};

static char memory[2 * LENGTH];
static DAT_EVD_HANDLE async_evd, conn_evd, dto_evd;
static DAT_LMR_TRIPLET half;
static DAT_LMR_HANDLE lmr;
static DAT_PZ_HANDLE pz;
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

static DAT_EVENT await(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;
	DAT_COUNT more;

	must("dat_evd_wait", dat_evd_wait(evd, 60 * SECOND, 1, &event, &more));
	if (event.event_number != number)
		exit((fprintf(stderr, "event 0x%x, not 0x%x\n", event.event_number, number), 1));
	return event;
}

static void set_up(char *name)
{
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_RMR_CONTEXT unused;
	DAT_VADDR address;
	DAT_VLEN size;

	must("dat_ia_open", dat_ia_open(name, 8, &async_evd, &ia));
	must("dat_pz_create", dat_pz_create(ia, &pz));
	must("dat_evd_create",
	     dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG,
			    &conn_evd));
	must("dat_evd_create",
	     dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG,
			    &dto_evd));
	must("dat_ep_create", dat_ep_create(ia, pz, dto_evd, dto_evd, conn_evd, NULL, &ep));
	must("dat_lmr_create",
	     dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(memory), pz,
			    DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
			    DAT_VA_TYPE_VA, &lmr, &half.lmr_context, &unused, &size, &address));
	half.virtual_address = (DAT_VADDR)(size_t)memory;
	half.segment_length = LENGTH;
}

static void lend(void)
{
	struct lent lent = { .address = half.virtual_address };
	DAT_RMR_COOKIE cookie = { .as_64 = 1 };
	DAT_PSP_HANDLE psp;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;
	DAT_COUNT more;

	must("dat_psp_create", dat_psp_create(ia, PORT, conn_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	fprintf(stderr, "listens\n");
	event = await(conn_evd, DAT_CONNECTION_REQUEST_EVENT);
	must("dat_cr_accept",
	     dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL));
	await(conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	must("dat_rmr_create", dat_rmr_create(pz, &rmr));
	must("dat_rmr_bind",
	     dat_rmr_bind(rmr, lmr, &half, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA, ep,
			  cookie, DAT_COMPLETION_DEFAULT_FLAG, &lent.context));
	await(dto_evd, DAT_RMR_BIND_COMPLETION_EVENT);
	memcpy(memory + LENGTH, &lent, sizeof(lent));
	half.virtual_address += LENGTH;
	half.segment_length = sizeof(lent);
	must("dat_ep_post_send", dat_ep_post_send(ep, 1, &half, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	await(dto_evd, DAT_DTO_COMPLETION_EVENT);
	while (!((volatile char *)memory)[LENGTH - 1])
		;
	must("dat_rmr_free", dat_rmr_free(rmr));
	printf("written by the peer, and taken back: %s\n", memory);
	/* The peer's next write ends the connection. */
	dat_evd_wait(conn_evd, 60 * SECOND, 1, &event, &more);
}

static void write_there(const char *host)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr(host) };
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_RMR_TRIPLET remote = { .segment_length = LENGTH };
	DAT_DTO_COMPLETION_STATUS status;
	struct lent lent;

	must("dat_ep_post_recv", dat_ep_post_recv(ep, 1, &half, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	must("dat_ep_connect",
	     dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&address, PORT, 60 * SECOND, 0, NULL,
			    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	await(conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	await(dto_evd, DAT_DTO_COMPLETION_EVENT);
	memcpy(&lent, memory, sizeof(lent));
	remote.virtual_address = lent.address;
	remote.rmr_context = lent.context;
	memset(memory, '.', LENGTH);
	strcpy(memory, "hello by RDMA");
	do {
		must("dat_ep_post_rdma_write",
		     dat_ep_post_rdma_write(ep, 1, &half, cookie, &remote,
					    DAT_COMPLETION_DEFAULT_FLAG));
		status = await(dto_evd, DAT_DTO_COMPLETION_EVENT)
				 .event_data.dto_completion_event_data.status;
		printf("write: status %d\n", status);
	} while (status == DAT_DTO_SUCCESS);
	exit(status != DAT_DTO_ERR_REMOTE_ACCESS); /* no access any more */
}

int main(int argc, char **argv)
{
	int lends = argc == 3 && !strcmp(argv[2], "lend");

	if (!lends && (argc != 4 || strcmp(argv[2], "write")))
		return fprintf(stderr, "usage: dapx-example-dat IA lend | write ADDRESS\n"), 2;
	set_up(argv[1]);
	lends ? lend() : write_there(argv[3]);
	return 0;
}
