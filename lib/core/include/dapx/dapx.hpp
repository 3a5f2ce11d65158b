// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// libdapx: everything. Begin with Context::open(); Documentation/examples/send.cpp shows the rest.
#pragma once

#include <dapx/address.hpp>
#include <dapx/cm_id.hpp>
#include <dapx/context.hpp>
#include <dapx/deadline.hpp>
#include <dapx/device_list.hpp>
#include <dapx/endpoint.hpp>
#include <dapx/endpoint_base.hpp>
#include <dapx/endpoint_options.hpp>
#include <dapx/error.hpp>
#include <dapx/evd.hpp>
#include <dapx/event.hpp>
#include <dapx/flags.hpp>
#include <dapx/memory_region.hpp>
#include <dapx/monitor.hpp>
#include <dapx/object.hpp>
#include <dapx/object_list.hpp>
#include <dapx/object_type.hpp>
#include <dapx/pd.hpp>
#include <dapx/post.hpp>
#include <dapx/poster.hpp>
#include <dapx/qp.hpp>
#include <dapx/rmr.hpp>
#include <dapx/srq.hpp>
#include <dapx/xrc_domain.hpp>
#include <dapx/xrc_domain_list.hpp>
#include <dapx/xrc_endpoint.hpp>
#include <dapx/xrc_qp.hpp>
