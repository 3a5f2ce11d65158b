// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "objects.hpp"

#include "measure.hpp"
#include "privilege.hpp"
#include "xrcd.hpp"

#include <dapx/dapx.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <iterator>

namespace tools {

namespace {

using dapx::ContextEntry;
using dapx::ObjectEntry;
using dapx::ObjectType;
using nlohmann::json;
using Rows = std::vector<std::vector<std::string>>;

template <class T> std::string or_dash(const std::optional<T>& value)
{
    return value ? fmt::format("{}", *value) : "-";
}

std::string or_dash(const std::string& text)
{
    return text.empty() ? "-" : printable(text);
}

std::string or_dash(const std::optional<dapx::Address>& address)
{
    return address ? address->to_string() : "-";
}

std::string number_or_dash(const std::optional<std::uint32_t>& number)
{
    const std::uint32_t value = number.value_or(0);
    return value == 0 ? "-" : fmt::format("{}", value);
}

template <std::size_t N>
std::string name_in(const std::array<const char*, N>& names, std::uint32_t value)
{
    return value < N ? names[value] : fmt::format("{}", value);
}

constexpr std::array ep_states = {"unconnected",    "reserved",           "passive-pending",
                                  "active-pending", "tentative-pending",  "completion-pending",
                                  "connected",      "disconnect-pending", "disconnected"};
constexpr std::array cm_states = {"idle",      "bound",   "resolving", "addr-ready", "route-ready",
                                  "listening", "request", "attached",  "ended"};

std::string state_text(const ObjectEntry& object)
{
    if (!object.state)
        return "-";
    switch (object.type) {
    case ObjectType::ep:
        return ep_state_text(*object.state);
    case ObjectType::cm:
        return name_in(cm_states, *object.state);
    case ObjectType::rmr:
        return *object.state == 0 ? "unbound" : "bound";
    default:
        return fmt::format("{}", *object.state);
    }
}

std::vector<std::string> access_names(std::uint32_t access)
{
    std::vector<std::string> names;
    for (const auto& [bit, name] : {std::pair{DAPX_ACCESS_LOCAL_WRITE, "local-write"},
                                    std::pair{DAPX_ACCESS_REMOTE_WRITE, "remote-write"},
                                    std::pair{DAPX_ACCESS_REMOTE_READ, "remote-read"},
                                    std::pair{DAPX_ACCESS_REMOTE_ATOMIC, "remote-atomic"}})
        if ((access & static_cast<std::uint32_t>(bit)) != 0)
            names.emplace_back(name);
    return names;
}

std::string access_text(const std::optional<std::uint32_t>& access)
{
    if (!access)
        return "-";
    std::string text;
    for (const std::string& name : access_names(*access))
        text += (text.empty() ? "" : ",") + name;
    return text.empty() ? "local-read" : text;
}

enum class Kind { text, number, statistic };

struct Column {
    const char* title;
    Kind kind;
    std::function<std::string(const ObjectEntry&)> value;
};

// NOLINTBEGIN(bugprone-throwing-static-initialization): a tool that cannot begin may end
const std::map<ObjectType, std::vector<Column>> columns_of = {
    {ObjectType::pd,
     {{"USERS", Kind::number, [](const auto& o) { return fmt::format("{}", o.users); }}}},
    {ObjectType::mr,
     {{"PD", Kind::number, [](const auto& o) { return or_dash(o.pd); }},
      {"BYTES", Kind::number, [](const auto& o) { return or_dash(o.length); }},
      {"ACCESS", Kind::text, [](const auto& o) { return access_text(o.access); }}}},
    {ObjectType::rmr,
     {{"STATE", Kind::text, state_text},
      {"PD", Kind::number, [](const auto& o) { return or_dash(o.pd); }},
      {"MR", Kind::number, [](const auto& o) { return or_dash(o.mr); }},
      {"BYTES", Kind::number, [](const auto& o) { return or_dash(o.length); }},
      {"ACCESS", Kind::text, [](const auto& o) { return access_text(o.access); }}}},
    {ObjectType::evd,
     {{"DEPTH", Kind::number, [](const auto& o) { return or_dash(o.depth); }},
      {"UNREAD", Kind::number,
       [](const auto& o) { return or_dash(o.unread) + (o.full ? ", full" : ""); }},
      {"EVENTS", Kind::statistic, [](const auto& o) { return or_dash(o.events); }}}},
    {ObjectType::srq,
     {{"PD", Kind::number, [](const auto& o) { return or_dash(o.pd); }},
      {"NUMBER", Kind::number, [](const auto& o) { return or_dash(o.number); }},
      {"DEPTH", Kind::number, [](const auto& o) { return or_dash(o.depth); }},
      {"LIMIT", Kind::number, [](const auto& o) { return number_or_dash(o.limit); }},
      {"RECEIVES", Kind::number, [](const auto& o) { return or_dash(o.receives); }},
      {"POSTED", Kind::statistic, [](const auto& o) { return or_dash(o.posted); }}}},
    {ObjectType::ep,
     {{"STATE", Kind::text, state_text},
      {"QP", Kind::number, [](const auto& o) { return or_dash(o.qp_num); }},
      {"PEER QP", Kind::number, [](const auto& o) { return number_or_dash(o.remote_qp_num); }},
      {"LOCAL", Kind::text, [](const auto& o) { return or_dash(o.local); }},
      {"REMOTE", Kind::text, [](const auto& o) { return or_dash(o.remote); }},
      {"REQUESTS", Kind::number, [](const auto& o) { return or_dash(o.requests); }},
      {"RECEIVES", Kind::number, [](const auto& o) { return or_dash(o.receives); }},
      {"POSTED", Kind::statistic, [](const auto& o) { return or_dash(o.posted); }},
      {"RECEIVED", Kind::statistic, [](const auto& o) { return or_dash(o.received); }}}},
    {ObjectType::cm,
     {{"STATE", Kind::text, state_text},
      {"LOCAL", Kind::text, [](const auto& o) { return or_dash(o.local); }},
      {"REMOTE", Kind::text, [](const auto& o) { return or_dash(o.remote); }},
      {"REQUESTS", Kind::number, [](const auto& o) { return or_dash(o.requests); }}}},
    {ObjectType::xrcd,
     {{"DOMAIN", Kind::number, [](const auto& o) { return or_dash(o.domain); }},
      {"USERS", Kind::number, [](const auto& o) { return fmt::format("{}", o.users); }}}},
    {ObjectType::xrc_qp,
     {{"DOMAIN", Kind::number, [](const auto& o) { return or_dash(o.domain); }},
      {"QP", Kind::number, [](const auto& o) { return or_dash(o.qp_num); }}}},
};

const std::vector<Column> common_columns = {
    {"DEVICE", Kind::text, [](const auto& o) { return or_dash(o.device); }},
    {"PID", Kind::number, [](const auto& o) { return pid_text(o.pid); }},
    {"NAME", Kind::text, [](const auto& o) { return or_dash(o.name); }},
    {"HANDLE", Kind::number, [](const auto& o) { return fmt::format("{}", o.handle); }},
};
// NOLINTEND(bugprone-throwing-static-initialization)

std::string class_name(ObjectType type)
{
    const auto found = std::ranges::find(object_classes, type,
                                         &std::map<std::string, ObjectType>::value_type::second);
    return found == object_classes.end() ? fmt::format("{}", static_cast<std::uint32_t>(type))
                                         : found->first;
}

template <class T> void put(json& object, const char* key, const std::optional<T>& value)
{
    if (value)
        object[key] = *value;
}

void put(json& object, const char* key, const std::optional<dapx::Address>& address)
{
    if (address)
        object[key] = address->to_string();
}

json object_json(const ObjectEntry& object)
{
    json result = {{"class", class_name(object.type)},
                   {"context", object.context},
                   {"device", object.device},
                   {"pid", object.pid},
                   {"name", object.name},
                   {"handle", object.handle},
                   {"users", object.users},
                   {"busy", object.busy}};
    if (object.state)
        result["state"] = state_text(object);
    put(result, "pd", object.pd);
    put(result, "mr", object.mr);
    put(result, "srq", object.srq);
    put(result, "qp", object.qp_num);
    put(result, "remote_qp", object.remote_qp_num);
    put(result, "local", object.local);
    put(result, "remote", object.remote);
    put(result, "number", object.number);
    put(result, "domain", object.domain);
    if (object.access)
        result["access"] = access_names(*object.access);
    put(result, "bytes", object.length);
    put(result, "depth", object.depth);
    put(result, "unread", object.unread);
    if (object.type == ObjectType::evd)
        result["full"] = object.full;
    put(result, "limit", object.limit);
    put(result, "requests", object.requests);
    put(result, "receives", object.receives);
    put(result, "posted", object.posted);
    put(result, "received", object.received);
    put(result, "events", object.events);
    return result;
}

} // namespace

const std::map<std::string, ObjectType> object_classes = {
    {"pd", ObjectType::pd},   {"mr", ObjectType::mr},     {"rmr", ObjectType::rmr},
    {"evd", ObjectType::evd}, {"srq", ObjectType::srq},   {"ep", ObjectType::ep},
    {"cm", ObjectType::cm},   {"xrcd", ObjectType::xrcd}, {"xrc-qp", ObjectType::xrc_qp},
};

std::string ep_state_text(std::uint32_t state)
{
    return name_in(ep_states, state);
}

std::string contexts_text(const std::vector<ContextEntry>& contexts, const ObjectFilter& filter,
                          bool all)
{
    Rows rows = {{"CONTEXT", "DEVICE", "PID", "NAME", "USER", "OBJECTS"}};
    for (const ContextEntry& context : contexts)
        if (filter.matches(context.pid, context.device))
            rows.push_back({fmt::format("{}", context.id), or_dash(context.device),
                            pid_text(context.pid), or_dash(context.name),
                            fmt::format("{}", context.user),
                            context.ending ? fmt::format("{}, ending", context.objects)
                                           : fmt::format("{}", context.objects)});
    return rows.size() == 1 ? none_text("open context", all) : table_text(rows, {0, 2, 4, 5});
}

namespace {

/// "": there is none.
std::string table_of(const std::vector<ObjectEntry>& objects, ObjectType type,
                     const ObjectFilter& filter, bool statistics)
{
    std::vector<Column> columns = common_columns;
    std::ranges::copy_if(columns_of.at(type), std::back_inserter(columns),
                         [statistics](const Column& column) {
                             return statistics || column.kind != Kind::statistic;
                         });
    Rows rows(1);
    std::vector<std::size_t> right;
    for (const Column& column : columns) {
        if (column.kind != Kind::text)
            right.push_back(rows.front().size());
        rows.front().emplace_back(column.title);
    }
    for (const ObjectEntry& object : objects) {
        if (object.type != type || !filter.matches(object.pid, object.device))
            continue;
        std::vector<std::string>& row = rows.emplace_back();
        for (const Column& column : columns)
            row.push_back(column.value(object));
    }
    return rows.size() == 1 ? "" : table_text(rows, right);
}

} // namespace

std::string objects_text(const std::vector<ObjectEntry>& objects, ObjectType type,
                         const ObjectFilter& filter, bool statistics, bool all)
{
    if (type != ObjectType::any) {
        const std::string table = table_of(objects, type, filter, statistics);
        return table.empty() ? none_text(class_name(type), all) : table;
    }
    std::string text;
    for (const auto& [name, one] : object_classes)
        if (const std::string table = table_of(objects, one, filter, statistics); !table.empty())
            text += fmt::format("{}{}\n{}", text.empty() ? "" : "\n", name, table);
    return text.empty() ? none_text("object", all) : text;
}

json contexts_json(const std::vector<ContextEntry>& contexts, const ObjectFilter& filter)
{
    json result = json::array();
    for (const ContextEntry& context : contexts)
        if (filter.matches(context.pid, context.device))
            result.push_back({{"context", context.id},
                              {"device", context.device},
                              {"pid", context.pid},
                              {"name", context.name},
                              {"user", context.user},
                              {"objects", context.objects},
                              {"ending", context.ending}});
    return result;
}

json objects_json(const std::vector<ObjectEntry>& objects, ObjectType type,
                  const ObjectFilter& filter)
{
    json result = json::array();
    for (const ObjectEntry& object : objects)
        if ((type == ObjectType::any || object.type == type) &&
            filter.matches(object.pid, object.device))
            result.push_back(object_json(object));
    return result;
}

} // namespace tools
