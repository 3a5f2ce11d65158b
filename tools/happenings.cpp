// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "happenings.hpp"

#include "measure.hpp"
#include "objects.hpp"
#include "xrcd.hpp"

#include <dapx/dapx.h>

#include <fmt/format.h>

#include <ctime>

namespace tools {

namespace {

using dapx::Happening;

constexpr std::int64_t second = 1'000'000'000;

std::string event_name(std::uint32_t event)
{
    switch (event) {
    case DAPX_GENL_EVENT_CONTEXT_NEW:
        return "context-new";
    case DAPX_GENL_EVENT_CONTEXT_ENDING:
        return "context-ending";
    case DAPX_GENL_EVENT_CONTEXT_ENDED:
        return "context-ended";
    case DAPX_GENL_EVENT_EP_STATE:
        return "ep-state";
    case DAPX_GENL_EVENT_EP_GONE:
        return "ep-gone";
    case DAPX_GENL_EVENT_RMR_REVOKED:
        return "rmr-revoked";
    case DAPX_GENL_EVENT_DOMAIN_NEW:
        return "domain-new";
    case DAPX_GENL_EVENT_DOMAIN_GONE:
        return "domain-gone";
    default:
        return fmt::format("{}", event);
    }
}

std::string cause_text(std::uint32_t cause)
{
    switch (cause) {
    case DAPX_GENL_CAUSE_CLOSED:
        return "closed";
    case DAPX_GENL_CAUSE_EXITED:
        return "process ended";
    case DAPX_GENL_CAUSE_REMOVED:
        return "device removed";
    default:
        return fmt::format("{}", cause);
    }
}

std::string what_text(const Happening& happening)
{
    switch (happening.event) {
    case DAPX_GENL_EVENT_CONTEXT_NEW:
        return fmt::format("context {}: attached", happening.context);
    case DAPX_GENL_EVENT_CONTEXT_ENDING:
        return fmt::format("context {}: {}, teardown of {} objects begins", happening.context,
                           cause_text(happening.cause.value_or(0)), happening.objects.value_or(0));
    case DAPX_GENL_EVENT_CONTEXT_ENDED:
        return fmt::format("context {}: gone, after {}", happening.context,
                           time_text(Nanoseconds(happening.duration.value_or(0))));
    case DAPX_GENL_EVENT_EP_STATE:
        return fmt::format("endpoint {}: {}", happening.handle.value_or(0),
                           ep_state_text(happening.state.value_or(0)));
    case DAPX_GENL_EVENT_EP_GONE:
        return fmt::format("endpoint {}: gone", happening.handle.value_or(0));
    case DAPX_GENL_EVENT_RMR_REVOKED:
        return fmt::format("RMR {}: revoked, {} of MR {}", happening.handle.value_or(0),
                           bytes_text(happening.length.value_or(0)), happening.mr.value_or(0));
    case DAPX_GENL_EVENT_DOMAIN_NEW:
        return fmt::format("XRC domain {}: made", happening.domain.value_or(0));
    case DAPX_GENL_EVENT_DOMAIN_GONE:
        return fmt::format("XRC domain {}: gone", happening.domain.value_or(0));
    default:
        return fmt::format("event {}", happening.event);
    }
}

std::string clock_text(std::int64_t time)
{
    const std::time_t seconds = time / second;
    std::tm local{};
    ::localtime_r(&seconds, &local);
    return fmt::format("{:02}:{:02}:{:02}.{:06}", local.tm_hour, local.tm_min, local.tm_sec,
                       time % second / 1000);
}

std::int64_t real_time(const Happening& happening, std::int64_t offset)
{
    return static_cast<std::int64_t>(happening.time) + offset;
}

} // namespace

std::string happening_text(const Happening& happening, std::int64_t offset, bool pids)
{
    std::string text;
    if (happening.lost != 0)
        text = fmt::format("({} events before this one were lost)\n", happening.lost);
    return text + fmt::format("{} {} {}{}: {}\n", clock_text(real_time(happening, offset)),
                              printable(happening.device),
                              pids ? fmt::format("{} ", happening.pid) : "",
                              printable(happening.name), what_text(happening));
}

nlohmann::json happening_json(const Happening& happening, std::int64_t offset, bool pids)
{
    nlohmann::json json = {{"event", event_name(happening.event)},
                           {"time", static_cast<double>(real_time(happening, offset)) / second},
                           {"lost", happening.lost},
                           {"context", happening.context},
                           {"device", happening.device},
                           {"name", happening.name}};
    if (pids)
        json["pid"] = happening.pid;
    if (happening.handle)
        json["handle"] = *happening.handle;
    if (happening.state)
        json["state"] = ep_state_text(*happening.state);
    if (happening.mr)
        json["mr"] = *happening.mr;
    if (happening.length)
        json["bytes"] = *happening.length;
    if (happening.domain)
        json["domain"] = *happening.domain;
    if (happening.objects)
        json["objects"] = *happening.objects;
    if (happening.cause)
        json["cause"] = cause_text(*happening.cause);
    if (happening.duration)
        json["duration"] = static_cast<double>(*happening.duration) / second;
    return json;
}

} // namespace tools
