// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// dapxctl doctor: what dapx needs, what of it is missing, and what to do about it.
#pragma once

#include "dat_conf.hpp"
#include "module_files.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tools {

struct KernelFacts {
    std::string release;
    std::string config;                       ///< the file; "": none can be read
    std::vector<std::string> missing_options; ///< according to it
};

struct ModuleFacts {
    bool loaded = false;
    std::string version; ///< if loaded
    ModuleFiles files;
    std::optional<ModuleBan> ban;
    bool must_be_signed = false;                     ///< for this kernel to load it
    std::optional<bool> has_signature;               ///< none: not known
    std::map<std::string, std::uint64_t> parameters; ///< those that may be read
};

struct NodeFacts {
    bool exists = false;
    unsigned mode = 0;
    std::string owner;         ///< "root:rdma"
    std::string group;         ///< "" if it is root's
    std::string number;        ///< "10 122", of the file; "" if it is no character device
    std::string device_number; ///< "10 122", by sysfs; "" if that does not say
    bool member = false;       ///< the group database has the caller in the group
    // What opening it and asking for its features came to.
    bool opened = false;
    bool denied = false;
    std::string error; ///< if not opened, a sentence
    std::vector<std::string> missing_features;
};

struct CallerFacts {
    std::string user;
    std::optional<std::uint64_t> locked_memory; ///< bytes; none: unlimited
    bool may_lock_all = false;                  ///< CAP_IPC_LOCK
};

struct PortFacts {
    std::uint32_t number = 0;
    std::string state;
    std::string netdev;
    bool netdev_here = true; ///< in this network namespace
    bool netdev_up = true;
    bool gid = true; ///< there is one
};

struct DeviceFacts {
    std::string name;
    std::string driver;
    bool refused = false; ///< the module does not take this driver
    std::string error;    ///< why else it cannot be used, a sentence
    bool address = true;  ///< there is one
    std::vector<PortFacts> ports;
};

struct DatFacts {
    std::string file;
    DatConfName name;
    bool device = true;
    bool library = true;
};

/// All that is known of this machine, before any judgement.
struct Facts {
    KernelFacts kernel;
    ModuleFacts module;
    NodeFacts node;
    CallerFacts caller;
    std::string tool_version;
    std::string library_version; ///< "" if it is not known
    bool devices_shared = true;  ///< with all network namespaces
    std::vector<DeviceFacts> devices;
    std::string netdev; ///< one that an rxe device could be made on; ""
    std::vector<DatFacts> dat;
    std::optional<std::string> verbs_error; ///< dapx-run is here, and cannot load its library: why
    bool verbs = false;                     ///< dapx-run is here
};

Facts gather_facts();

enum class Health { ok, warning, error };

struct Check {
    std::string name;
    Health health;
    std::string text;
    std::string remedy; ///< "" if ok
};

/// In the order in which to mend them.
std::vector<Check> diagnose(const Facts& facts);

/// A line each, "ok" in front, or what it is.
std::string checks_text(const std::vector<Check>& checks);
nlohmann::json checks_json(const std::vector<Check>& checks);
bool broken(const std::vector<Check>& checks);

} // namespace tools
