// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "command_line.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

namespace tools {

namespace {

/// Says @p text on stderr. Unlike fmt::print(), takes it as it is if that cannot be written.
int fail(const CLI::App& app, const char* text, int code) noexcept
{
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), text);
    return code;
}

/// The word that stands in the place of a subcommand; "": another thing is wrong. CLI11 tells of
/// the subcommand that is missing.
std::string no_subcommand(const CLI::App& app)
{
    const CLI::App* at = &app;
    while (!at->get_subcommands().empty())
        at = at->get_subcommands().front();
    if (at->get_require_subcommand_min() == 0 || at->remaining().empty())
        return {};
    std::string known;
    for (const CLI::App* one : at->get_subcommands({}))
        known += (known.empty() ? "" : ", ") + one->get_name();
    return fmt::format("'{}' is no subcommand; there are {}", at->remaining().front(), known);
}

int run_body(CLI::App& app, int argc, char** argv, const std::function<int()>& body)
{
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // Help and version are "errors" as well.
        if (error.get_exit_code() == 0)
            return app.exit(error);
        if (const std::string wrong = no_subcommand(app); !wrong.empty())
            throw UsageError(wrong);
        throw UsageError(fmt::format("{}; see '{} --help'", error.what(), app.get_name()));
    }
    return body();
}

} // namespace

int run(CLI::App& app, int argc, char** argv, const std::function<int()>& body)
{
    int code = 0;
    try {
        code = run_body(app, argc, argv, body);
    } catch (const UsageError& error) {
        return fail(app, error.what(), exit_usage);
    } catch (const std::bad_alloc&) {
        return fail(app, "out of memory", exit_failure);
    } catch (const std::exception& error) {
        return fail(app, error.what(), exit_failure);
    }
    // What was printed is in the file only now, or is not.
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        return fail(app,
                    errno == 0
                        ? "cannot write the output"
                        : fmt::format("cannot write the output: {}", std::strerror(errno)).c_str(),
                    exit_failure);
    return code;
}

void add_waiting_options(CLI::App& app, Waiting& waiting)
{
    auto* poll = app.add_flag_callback(
        "--poll", [&waiting] { waiting = Waiting::poll; },
        "Look at the event ring again and again: quickest, but takes a processor");
    app.add_flag_callback(
           "--wait", [&waiting] { waiting = Waiting::wait; },
           "Sleep in the kernel until there is an event")
        ->excludes(poll);
}

CLI::Validator seconds(double least)
{
    const auto check = [least](const std::string& text) -> std::string {
        double value = 0;
        // Said so that what is no number at all, which compares with nothing, is none either.
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= max_seconds)
            return {};
        return fmt::format("'{}' is no number of seconds from {} to {}", text, least, max_seconds);
    };
    return {check, ""};
}

void add_server_options(CLI::App& app, ServerOptions& options)
{
    app.add_flag("--once", options.once, "With --server: end when the first client was served");
    app.add_option("--max-clients", options.max_clients, "With --server: most clients at a time")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--idle-timeout", options.idle_timeout,
                   "With --server: seconds after which a silent client is ended; 0: never")
        ->check(seconds(0))
        ->capture_default_str();
}

void add_json_options(CLI::App& command, JsonStyle& style, const std::string& what)
{
    command.add_flag("-j,--json", style.json, what);
    command.add_flag("-p,--pretty", style.pretty, "With -j: in several lines, indented");
}

} // namespace tools
