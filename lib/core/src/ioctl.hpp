// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The only way from the library to the module's commands.
#pragma once

#include <dapx/dapx.h>
#include <dapx/error.hpp>

#include <string_view>

namespace dapx::detail {

struct Command {
    unsigned long request;
    const char* name;
    /// Whether a signal is of no interest to the caller: the command is issued again.
    bool retry_on_signal;
};

/// The command that takes a struct of type T.
template <class T> inline constexpr Command command_of{};

#define DAPX_COMMAND(type, name, retry)                                                            \
    template <> inline constexpr Command command_of<::type> = {name, #name, retry}

DAPX_COMMAND(dapx_info, DAPX_INFO, true);
DAPX_COMMAND(dapx_attach, DAPX_ATTACH, true);
DAPX_COMMAND(dapx_query_device, DAPX_QUERY_DEVICE, true);
DAPX_COMMAND(dapx_query_object, DAPX_QUERY_OBJECT, true);
// Waits for acknowledgements that the caller may have to give: a signal must get through.
DAPX_COMMAND(dapx_free, DAPX_FREE, false);
DAPX_COMMAND(dapx_doorbell, DAPX_DOORBELL, true);
DAPX_COMMAND(dapx_pd_create, DAPX_PD_CREATE, true);
DAPX_COMMAND(dapx_mr_create, DAPX_MR_CREATE, true);
DAPX_COMMAND(dapx_mr_modify, DAPX_MR_MODIFY, true);
DAPX_COMMAND(dapx_evd_create, DAPX_EVD_CREATE, true);
// Waits as long as the caller says: a signal must get through.
DAPX_COMMAND(dapx_evd_wait, DAPX_EVD_WAIT, false);
DAPX_COMMAND(dapx_evd_resize, DAPX_EVD_RESIZE, true);
DAPX_COMMAND(dapx_evd_eventfd, DAPX_EVD_EVENTFD, true);
DAPX_COMMAND(dapx_evd_post, DAPX_EVD_POST, true);
DAPX_COMMAND(dapx_srq_create, DAPX_SRQ_CREATE, true);
DAPX_COMMAND(dapx_srq_modify, DAPX_SRQ_MODIFY, true);
DAPX_COMMAND(dapx_srq_query, DAPX_SRQ_QUERY, true);
DAPX_COMMAND(dapx_ep_create, DAPX_EP_CREATE, true);
DAPX_COMMAND(dapx_ep_query, DAPX_EP_QUERY, true);
DAPX_COMMAND(dapx_ep_modify, DAPX_EP_MODIFY, true);
DAPX_COMMAND(dapx_ep_connect, DAPX_EP_CONNECT, true);
DAPX_COMMAND(dapx_ep_accept, DAPX_EP_ACCEPT, true);
DAPX_COMMAND(dapx_ep_establish, DAPX_EP_ESTABLISH, true);
DAPX_COMMAND(dapx_ep_disconnect, DAPX_EP_DISCONNECT, true);
DAPX_COMMAND(dapx_ep_reset, DAPX_EP_RESET, true);
DAPX_COMMAND(dapx_ep_resize, DAPX_EP_RESIZE, true);
DAPX_COMMAND(dapx_srq_resize, DAPX_SRQ_RESIZE, true);
DAPX_COMMAND(dapx_cm_create, DAPX_CM_CREATE, true);
DAPX_COMMAND(dapx_cm_bind, DAPX_CM_BIND, true);
DAPX_COMMAND(dapx_cm_listen, DAPX_CM_LISTEN, true);
DAPX_COMMAND(dapx_cm_resolve, DAPX_CM_RESOLVE, true);
DAPX_COMMAND(dapx_cm_query, DAPX_CM_QUERY, true);
DAPX_COMMAND(dapx_cm_reject, DAPX_CM_REJECT, true);
DAPX_COMMAND(dapx_cm_ack, DAPX_CM_ACK, true);
DAPX_COMMAND(dapx_cm_take, DAPX_CM_TAKE, true);
DAPX_COMMAND(dapx_cm_modify, DAPX_CM_MODIFY, true);
DAPX_COMMAND(dapx_rmr_create, DAPX_RMR_CREATE, true);
DAPX_COMMAND(dapx_rmr_bind, DAPX_RMR_BIND, true);
DAPX_COMMAND(dapx_rmr_query, DAPX_RMR_QUERY, true);
DAPX_COMMAND(dapx_xrcd_open, DAPX_XRCD_OPEN, true);
DAPX_COMMAND(dapx_xrc_qp_create, DAPX_XRC_QP_CREATE, true);
DAPX_COMMAND(dapx_xrc_qp_register, DAPX_XRC_QP_REGISTER, true);
DAPX_COMMAND(dapx_xrc_qp_unregister, DAPX_XRC_QP_UNREGISTER, true);
DAPX_COMMAND(dapx_xrc_qp_modify, DAPX_XRC_QP_MODIFY, true);
DAPX_COMMAND(dapx_xrc_qp_accept, DAPX_XRC_QP_ACCEPT, true);
DAPX_COMMAND(dapx_xrc_qp_query, DAPX_XRC_QP_QUERY, true);
DAPX_COMMAND(dapx_xrc_qp_disconnect, DAPX_XRC_QP_DISCONNECT, true);

#undef DAPX_COMMAND

/// Issues a command. @return 0 or an errno.
[[nodiscard]] int issue(int fd, const Command& command, void* argument) noexcept;

/// Sets argument.size and issues the command of its type. @return 0 or an errno.
template <class T> [[nodiscard]] int command(int fd, T& argument) noexcept
{
    static_assert(command_of<T>.request != 0);
    argument.size = sizeof(T);
    return issue(fd, command_of<T>, &argument);
}

/// The same, with a sentence on failure. @p attempt: what was attempted, "cannot ...".
template <class T>
[[nodiscard]] Result<void> command(int fd, T& argument, const char* attempt) noexcept;

} // namespace dapx::detail

#include "explain.hpp"

template <class T>
dapx::Result<void> dapx::detail::command(int fd, T& argument, const char* attempt) noexcept
{
    if (const int error = command(fd, argument); error != 0)
        return std::unexpected(explain(error, command_of<T>.name, attempt));
    return {};
}
