// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "registry.hpp"

#include "dat_conf.hpp"
#include "explain.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

namespace dapx::dat::registry {

namespace {

/// A table that was registered once. They are kept: handles are compared with them without a lock.
struct Table {
    const DAT_PROVIDER* provider;
    std::atomic<bool> registered{true};
    Table* next;
};

std::atomic<Table*> tables{nullptr};

/// A line of dat.conf, its library if it is loaded, and who uses it.
struct Line {
    Entry entry;
    void* library = nullptr;
    const DAT_PROVIDER* provider = nullptr;
    int users = 0;
};

DAT_PROVIDER_INFO info_of(const Entry& entry) noexcept
{
    DAT_PROVIDER_INFO info{};
    entry.ia_name.copy(info.ia_name, sizeof(info.ia_name) - 1);
    info.dapl_version_major = entry.major;
    info.dapl_version_minor = entry.minor;
    info.is_thread_safe = entry.thread_safe ? DAT_TRUE : DAT_FALSE;
    return info;
}

class Registry {
public:
    DAT_RETURN open(const DAT_PROVIDER_INFO& wanted, const DAT_PROVIDER*& provider)
    {
        const std::lock_guard lock(mutex_);
        read();
        DAT_RETURN_SUBTYPE missing = DAT_NAME_NOT_REGISTERED;
        const std::vector<Line*> lines = find(wanted, missing);
        if (lines.empty() && !complaint_.empty())
            explain(wanted.ia_name, complaint_);
        // Of a provider that cannot be loaded, the next line may name another file.
        for (Line* line : lines) {
            if (line->users == 0 && !load(*line))
                continue;
            ++line->users;
            provider = line->provider;
            return DAT_SUCCESS;
        }
        return error(DAT_PROVIDER_NOT_FOUND, missing);
    }

    void close(const DAT_PROVIDER& provider)
    {
        const std::lock_guard lock(mutex_);
        for (Line& line : lines_)
            if (line.provider == &provider && --line.users == 0)
                unload(line);
    }

    DAT_COUNT list(std::span<DAT_PROVIDER_INFO* const> infos)
    {
        const std::lock_guard lock(mutex_);
        read();
        std::size_t i = 0;
        for (const Line& line : lines_)
            if (i < infos.size())
                *infos[i++] = info_of(line.entry);
        return static_cast<DAT_COUNT>(lines_.size());
    }

    /// In load(), called by the library.
    DAT_RETURN add(const DAT_PROVIDER& provider, const DAT_PROVIDER_INFO& info)
    {
        const std::lock_guard lock(mutex_);
        for (Line& line : lines_) {
            if (!same(info_of(line.entry), info) || (loading_ != nullptr && loading_ != &line))
                continue;
            if (line.provider != nullptr)
                return error(DAT_PROVIDER_ALREADY_REGISTERED);
            line.provider = &provider;
            publish(provider);
            return DAT_SUCCESS;
        }
        return error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
    }

    DAT_RETURN remove(const DAT_PROVIDER& provider)
    {
        const std::lock_guard lock(mutex_);
        for (Line& line : lines_) {
            if (line.provider != &provider)
                continue;
            if (line.users > 0)
                return error(DAT_PROVIDER_IN_USE);
            line.provider = nullptr;
            withdraw(provider);
            return DAT_SUCCESS;
        }
        return error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
    }

private:
    static bool same(const DAT_PROVIDER_INFO& a, const DAT_PROVIDER_INFO& b) noexcept
    {
        return std::strcmp(a.ia_name, b.ia_name) == 0 &&
               a.dapl_version_major == b.dapl_version_major &&
               a.dapl_version_minor == b.dapl_version_minor && a.is_thread_safe == b.is_thread_safe;
    }

    /// dat.conf, until there is one to be read.
    void read()
    {
        if (!lines_.empty())
            return;
        const std::string path = dat_conf_path();
        std::ifstream file(path);
        std::vector<Entry> entries;
        if (file)
            entries = parse_entries(file);
        // A folder can be opened, too.
        if (!file.is_open() || file.bad()) {
            complaint_ = "cannot read " + path + ": " + std::strerror(errno) +
                         "; write it with 'dapxctl dat-conf', or name another one in DAT_OVERRIDE";
            return;
        }
        for (Entry& entry : entries)
            if (entry.major == DAT_VERSION_MAJOR)
                lines_.push_back({.entry = std::move(entry)});
        complaint_ = "no such u1.2 line in " + path + "; 'dapxctl dat-conf' prints those of dapx";
    }

    /// The lines for it. If there are none, @p missing says what is missing as exactly as DAT can.
    std::vector<Line*> find(const DAT_PROVIDER_INFO& wanted, DAT_RETURN_SUBTYPE& missing)
    {
        std::vector<Line*> found;
        for (Line& line : lines_) {
            const Entry& entry = line.entry;
            if (entry.ia_name != wanted.ia_name)
                continue;
            if (entry.major != wanted.dapl_version_major)
                missing = std::max(missing, DAT_MAJOR_NOT_FOUND);
            else if (entry.minor < wanted.dapl_version_minor)
                missing = std::max(missing, DAT_MINOR_NOT_FOUND);
            else if (entry.thread_safe != (wanted.is_thread_safe == DAT_TRUE))
                missing = std::max(missing, DAT_THREAD_SAFETY_NOT_FOUND);
            else
                found.push_back(&line);
        }
        if (!found.empty())
            missing = DAT_NAME_NOT_REGISTERED;
        return found;
    }

    bool load(Line& line)
    {
        const DAT_PROVIDER_INFO info = info_of(line.entry);
        line.library = dlopen(line.entry.library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (line.library == nullptr) {
            explain(info.ia_name, dlerror());
            return false;
        }
        if (const auto init = function<DAT_PROVIDER_INIT_FUNC>(line, DAT_PROVIDER_INIT_FUNC_STR)) {
            loading_ = &line;
            init(&info, line.entry.ia_parameters.c_str());
            loading_ = nullptr;
        } else {
            explain(info.ia_name, line.entry.library + " is no library of a DAT 1.2 provider");
        }
        if (line.provider != nullptr)
            return true;
        dlclose(std::exchange(line.library, nullptr));
        return false;
    }

    void unload(Line& line)
    {
        const DAT_PROVIDER_INFO info = info_of(line.entry);
        if (const auto fini = function<DAT_PROVIDER_FINI_FUNC>(line, DAT_PROVIDER_FINI_FUNC_STR))
            fini(&info);
        // Whether it took its table back or not: there is nobody behind it any more.
        if (const DAT_PROVIDER* left = std::exchange(line.provider, nullptr))
            withdraw(*left);
        dlclose(std::exchange(line.library, nullptr));
    }

    template <class Function> static Function function(const Line& line, const char* name) noexcept
    {
        return reinterpret_cast<Function>(dlsym(line.library, name));
    }

    static void publish(const DAT_PROVIDER& provider)
    {
        for (Table* table = tables.load(); table != nullptr; table = table->next)
            if (table->provider == &provider) {
                table->registered.store(true, std::memory_order_release);
                return;
            }
        tables.store(new Table{.provider = &provider, .next = tables.load()},
                     std::memory_order_release);
    }

    static void withdraw(const DAT_PROVIDER& provider) noexcept
    {
        for (Table* table = tables.load(); table != nullptr; table = table->next)
            if (table->provider == &provider)
                table->registered.store(false, std::memory_order_release);
    }

    /// Recursive: the library's init and fini call add() and remove().
    std::recursive_mutex mutex_;
    std::list<Line> lines_;
    const Line* loading_ = nullptr;
    std::string complaint_;
};

Registry& the_registry()
{
    // Never destroyed: programs may close IAs in their destructors.
    static auto* registry = new Registry;
    return *registry;
}

/// What @p call returns, or that there was no memory for it.
template <class Call> DAT_RETURN guarded(Call call) noexcept
{
    try {
        return call();
    } catch (const std::exception&) {
        return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
    }
}

} // namespace

const DAT_PROVIDER* provider_of(DAT_HANDLE handle) noexcept
{
    // Nothing lies in the first page, nor begins at an odd address.
    const auto address = reinterpret_cast<std::uintptr_t>(handle);
    if (address < 4096 || address % alignof(void*) != 0)
        return nullptr;
    const auto* const provider = *static_cast<const DAT_PROVIDER* const*>(handle);
    for (const Table* table = tables.load(std::memory_order_acquire); table != nullptr;
         table = table->next)
        if (table->provider == provider)
            return table->registered.load(std::memory_order_acquire) ? provider : nullptr;
    return nullptr;
}

DAT_RETURN open_provider(const DAT_PROVIDER_INFO& wanted, const DAT_PROVIDER*& provider) noexcept
{
    return guarded([&] { return the_registry().open(wanted, provider); });
}

void close_provider(const DAT_PROVIDER& provider) noexcept
{
    the_registry().close(provider);
}

DAT_COUNT list_providers(std::span<DAT_PROVIDER_INFO* const> infos) noexcept
{
    DAT_COUNT count = 0;
    (void)guarded([&] {
        count = the_registry().list(infos);
        return DAT_SUCCESS;
    });
    return count;
}

DAT_RETURN add_provider(const DAT_PROVIDER& provider, const DAT_PROVIDER_INFO& info) noexcept
{
    return guarded([&] { return the_registry().add(provider, info); });
}

DAT_RETURN remove_provider(const DAT_PROVIDER& provider, const DAT_PROVIDER_INFO&) noexcept
{
    return guarded([&] { return the_registry().remove(provider); });
}

} // namespace dapx::dat::registry
