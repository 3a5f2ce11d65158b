/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dat.c is compiled for DAT 2.0, and once more with DAT_1_2 for that version: the same
 * tests, but those of what 1.2 does not have. Here is what the versions call otherwise.
 */
#ifndef SELFTEST_DAT_VERSIONS_H
#define SELFTEST_DAT_VERSIONS_H

#ifdef DAT_1_2
#include <dat/udat.h>

#include <dat/dat_registry.h>

/* Of an RMR triplet. */
#define TARGET target_address

static inline DAT_RETURN reject(DAT_CR_HANDLE cr)
{
	return dat_cr_reject(cr);
}

static inline DAT_RETURN create_lmr(DAT_IA_HANDLE ia, DAT_MEM_TYPE type,
				    DAT_REGION_DESCRIPTION region, DAT_VLEN length,
				    DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS rights,
				    DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *local,
				    DAT_RMR_CONTEXT *remote, DAT_VLEN *size,
				    DAT_VADDR *address)
{
	return dat_lmr_create(ia, type, region, length, pz, rights, lmr, local, remote,
			      size, address);
}

static inline DAT_RETURN bind_rmr(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr,
				  const DAT_LMR_TRIPLET *triplet, DAT_MEM_PRIV_FLAGS rights,
				  DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
				  DAT_RMR_CONTEXT *context)
{
	return dat_rmr_bind(rmr, triplet, rights, ep, cookie, DAT_COMPLETION_DEFAULT_FLAG,
			    context);
}

static inline DAT_AGENT_FUNC agent_of(DAT_CNO_HANDLE cno)
{
	DAT_CNO_PARAM param;

	return dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param) ?
		       NULL : param.agent.proxy_agent_func;
}
#else
#include <dat2/udat.h>

#include <dat2/dat_registry.h>

#define TARGET virtual_address

static inline DAT_RETURN reject(DAT_CR_HANDLE cr)
{
	return dat_cr_reject(cr, 0, NULL);
}

static inline DAT_RETURN create_lmr(DAT_IA_HANDLE ia, DAT_MEM_TYPE type,
				    DAT_REGION_DESCRIPTION region, DAT_VLEN length,
				    DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS rights,
				    DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *local,
				    DAT_RMR_CONTEXT *remote, DAT_VLEN *size,
				    DAT_VADDR *address)
{
	return dat_lmr_create(ia, type, region, length, pz, rights, DAT_VA_TYPE_VA, lmr,
			      local, remote, size, address);
}

static inline DAT_RETURN bind_rmr(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr,
				  const DAT_LMR_TRIPLET *triplet, DAT_MEM_PRIV_FLAGS rights,
				  DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
				  DAT_RMR_CONTEXT *context)
{
	return dat_rmr_bind(rmr, lmr, triplet, rights, DAT_VA_TYPE_VA, ep, cookie,
			    DAT_COMPLETION_DEFAULT_FLAG, context);
}

static inline DAT_AGENT_FUNC agent_of(DAT_CNO_HANDLE cno)
{
	DAT_CNO_PARAM param;

	return dat_cno_query(cno, DAT_CNO_FIELD_PROXY_TYPE, &param) ||
	       param.proxy_type != DAT_PROXY_TYPE_AGENT ?
		       NULL : param.proxy.agent.proxy_agent_func;
}
#endif

#endif
