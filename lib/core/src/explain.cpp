// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "explain.hpp"

#include "sysfs.hpp"

#include <cerrno>
#include <cstring>
#include <new>

#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dapx::detail {

namespace {

constexpr const char* not_the_node =
    "it is not the device node of the dapx module; 'dapxctl doctor' says how to create that";

std::string join(const std::vector<std::string>& names)
{
    std::string text;
    for (const std::string& name : names)
        text += (text.empty() ? "" : ", ") + name;
    return text;
}

std::string group_name(gid_t gid)
{
    // The plain call has one buffer for all threads.
    ::group entry{};
    ::group* found = nullptr;
    std::vector<char> buffer(1024);
    while (::getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found) == ERANGE)
        buffer.resize(2 * buffer.size());
    return found != nullptr ? found->gr_name : std::to_string(gid);
}

/// The errno, which matters more than a sentence for which there is no memory.
Error without_text(int code) noexcept
{
    return Error(code, "", no_memory_for_text);
}

} // namespace

std::string cause(int code)
{
    switch (code) {
    case ENOTTY:
        return "the dapx module that is loaded does not know this command; load one of this "
               "library's version or newer ('modinfo dapx' shows the version)";
    case E2BIG:
        return "the dapx module that is loaded is older than this library and lacks what was "
               "asked for; load a newer one";
    case EINVAL:
        return "a value is out of range; 'dapxctl info' and 'dapxctl devices -j' show the limits";
    case EOPNOTSUPP:
        return "this device, or this dapx module, does not support it";
    case EOVERFLOW:
        return "the address range wraps around";
    case EFAULT:
        return "not all of the memory is mapped";
    case ENOENT:
        return "the object does not exist (any more)";
    case EBADFD:
        return "the object's state does not permit it";
    case EBUSY:
        return "it is in use by another object; free that one first";
    case EPERM:
        return "the context belongs to the process that opened it; after fork() the child must "
               "open its own";
    case EACCES:
        return "the memory is mapped with fewer rights than asked for";
    case ENODEV:
        return "no such RDMA device";
    case EIO:
        return "the RDMA device was removed; close the context and open another";
    case ENOMEM:
        return "out of memory";
    case EDQUOT:
        return "the limit of objects is reached; free some, or raise the dapx module's limits "
               "('modinfo -p dapx' lists them)";
    case EAGAIN:
        return "no room in the ring; take events out first";
    case EBADMSG:
        return "the ring's indices were overwritten, by a stray write of this program";
    case ENOTRECOVERABLE:
        return "the shared receive queue is out of service, as a receive in it was bad, which its "
               "asynchronous event names; make another queue";
    case ETIMEDOUT:
        return "timed out";
    case EINTR:
        return "interrupted by a signal";
    case ECANCELED:
        return "the object was freed meanwhile";
    case EADDRNOTAVAIL:
        return "the address is not one of this RDMA device; 'dapxctl devices' shows which are";
    case EADDRINUSE:
        return "the port is in use; choose another";
    case EEXIST:
        return "it is there already";
    case EBADF:
        return "the file descriptor is not open";
    case EPROTO:
        return "one side of the connection speaks XRC, the other does not; requests of XRC "
               "endpoints are for receive queue pairs, others for endpoints";
    default:
        return std::strerror(code);
    }
}

std::string bytes_text(std::uint64_t bytes)
{
    static constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    while (unit + 1 < std::size(units) && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        ++unit;
    }
    return std::to_string(bytes) + " " + units[unit];
}

Error explain_address(int code, const char* call, const char* attempt,
                      const Address& address) noexcept
try {
    return Error(code, call, std::string(attempt) + " " + address.to_string() + ": " + cause(code));
} catch (const std::bad_alloc&) {
    return without_text(code);
}

Error explain_system(int code, const char* call, const char* attempt) noexcept
try {
    return Error(code, call, std::string(attempt) + ": " + std::strerror(code));
} catch (const std::bad_alloc&) {
    return without_text(code);
}

Error explain_layout() noexcept
try {
    return Error(EPROTO, "ring layout",
                 "the dapx module answered a ring layout that this library cannot read; use a "
                 "module and a library of one version");
} catch (const std::bad_alloc&) {
    return without_text(EPROTO);
}

Error explain_contexts(const char* call, const char* attempt) noexcept
try {
    return Error(EINVAL, call,
                 std::string(attempt) + ": its objects are of two contexts; make all of them in "
                                        "one");
} catch (const std::bad_alloc&) {
    return without_text(EINVAL);
}

Error explain_private_data(std::size_t size, std::size_t most) noexcept
try {
    return Error(EINVAL, "private data",
                 "cannot send " + std::to_string(size) + " bytes of private data: the most is " +
                     std::to_string(most) + "; send the rest as a message");
} catch (const std::bad_alloc&) {
    return without_text(EINVAL);
}

Error explain_open(int code, const std::string& node, const std::string& sysfs) noexcept
try {
    std::string text = "cannot open " + node + ": ";
    switch (code) {
    case ENOENT:
    case ENXIO:
    case ENODEV:
        if (!module_loaded(sysfs))
            text += "the dapx module is not loaded; run 'modprobe dapx' as root";
        else if (code == ENOENT)
            text += "the dapx module is loaded, but the device node is not here; in a container, "
                    "pass it in (docker: --device /dev/dapx), else look at udev's log";
        else
            text += not_the_node;
        break;
    case ENOTTY:
    case EINVAL:
    case EBADE:
        text += not_the_node;
        break;
    case EACCES:
    case EPERM: {
        struct ::stat info{};
        if (::stat(node.c_str(), &info) == 0 && (info.st_mode & S_IRGRP) != 0 && info.st_gid != 0) {
            const std::string group = group_name(info.st_gid);
            text += "permission denied: it is for root and group " + group + "; run 'usermod -aG " +
                    group + " USER' as root and log in again";
        } else {
            text += "permission denied: it is for root and group rdma; make it so with 'chgrp "
                    "rdma " +
                    node + "; chmod 660 " + node + "' as root, and join the group";
        }
        break;
    }
    case EMFILE:
        text += "this process has too many open files; raise 'ulimit -n'";
        break;
    default:
        text += std::strerror(code);
    }
    return Error(code, "open", std::move(text));
} catch (const std::bad_alloc&) {
    return without_text(code);
}

Error explain_attach(int code, const std::string& device, const std::string& sysfs) noexcept
try {
    std::string text = "cannot use RDMA device " + device + ": ";
    switch (code) {
    case ENODEV: {
        const std::vector<std::string> names = device_names(sysfs);
        if (names.empty())
            text = "there is no RDMA device " + device +
                   ", nor any other; 'rdma link add rxe0 type rxe netdev eth0' as root makes one "
                   "on a network interface";
        else
            text = "there is no RDMA device " + device + "; there are: " + join(names);
        break;
    }
    case EOPNOTSUPP: {
        // The module accepts all software drivers.
        const std::string driver = hardware_driver(device, sysfs);
        text += driver.empty() ? "its driver" : "its driver, " + driver + ",";
        text += " is not one that dapx knows to be safe; 'dapxctl devices' shows which can be used";
        break;
    }
    case EBUSY:
        text += "the context is bound to a device already; open another context";
        break;
    case EINVAL:
        text += "that is no name of a device";
        break;
    default:
        text += cause(code);
    }
    return Error(code, "DAPX_ATTACH", std::move(text));
} catch (const std::bad_alloc&) {
    return without_text(code);
}

Error explain_mr(int code, std::uint64_t length, bool xrc, const char* call) noexcept
try {
    std::string text = "cannot register " + bytes_text(length) + " of memory: ";
    ::rlimit limit{};
    const bool limited = ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
                         limit.rlim_cur != RLIM_INFINITY && ::geteuid() != 0;
    switch (code) {
    case ENOMEM:
    case EPERM:
        // EPERM is the kernel's answer to who may lock nothing at all.
        if (limited && (code == ENOMEM || limit.rlim_cur == 0))
            text += "this process may lock " + bytes_text(limit.rlim_cur) +
                    " (RLIMIT_MEMLOCK); raise it with 'ulimit -l', or for good with a 'memlock' "
                    "line in /etc/security/limits.conf" +
                    (xrc ? "; memory for XRC counts twice" : "");
        else
            text += cause(code);
        break;
    case EACCES:
        text += "it is mapped with fewer rights than asked for; map it writable, or ask for less";
        break;
    case EINVAL:
        text += length == 0 ? "there must be at least one byte"
                            : "rights of peers to write need local_write, and the length must be "
                              "one that the device takes";
        break;
    default:
        text += cause(code);
    }
    return Error(code, call, std::move(text));
} catch (const std::bad_alloc&) {
    return without_text(code);
}

Error explain_free(int code, ObjectType type) noexcept
try {
    if (type == ObjectType::xrcd && code == EBUSY)
        return Error(code, "DAPX_FREE",
                     "cannot close the XRC domain: shared receive queues, endpoints or "
                     "registrations with receive queue pairs of this process use it; free those "
                     "first");
    return explain(code, "DAPX_FREE", "cannot free the object");
} catch (const std::bad_alloc&) {
    return without_text(code);
}

Error explain_srq_limit(int code) noexcept
try {
    std::string text = "cannot set the limit of the shared receive queue: ";
    switch (code) {
    case EBADFD:
        text += "it has no event dispatcher for the event; make it with one";
        break;
    case EINVAL:
        text += "the most is its depth";
        break;
    default:
        text += cause(code);
    }
    return Error(code, "DAPX_SRQ_MODIFY", std::move(text));
} catch (const std::bad_alloc&) {
    return without_text(code);
}

Error explain_resize(int code, const char* call, const char* what) noexcept
try {
    const std::string text = std::string("cannot resize ") + what + ": ";
    if (code == EBUSY)
        return Error(code, call,
                     text + "more waits in its ring than the new one holds; take it out first, or "
                            "ask for more");
    return Error(code, call, text + cause(code));
} catch (const std::bad_alloc&) {
    return without_text(code);
}

Error explain_xrc_qp(int code, const char* call, const char* attempt, std::uint32_t qp_num) noexcept
try {
    const std::string_view command = call;
    std::string text = std::string(attempt) + " receive queue pair " + std::to_string(qp_num);
    switch (code) {
    case EINVAL:
        text += ": the domain has none of this number (any more: it ends with its last "
                "registration), ";
        if (command == "DAPX_XRC_QP_UNREGISTER")
            text += "or this context is not registered with it";
        else if (command == "DAPX_XRC_QP_MODIFY")
            text += "or a value of the step is out of range";
        else if (command == "DAPX_XRC_QP_ACCEPT")
            text += "or there is too much private data";
        else
            text += "or it is another domain's; ask the peer, or who made it, for one that lives";
        break;
    case EACCES:
        text += ": this context is not registered with it; register first";
        break;
    case EBADFD:
        if (command == "DAPX_XRC_QP_DISCONNECT") {
            text += ": it is not connected, or its connection has ended; there is nothing to end";
            break;
        }
        text += ": that is no step from its state; each is made once, and a connection that "
                "ended takes a new receive queue pair";
        break;
    case EEXIST:
        text += ": this context is registered with it already; use that registration";
        break;
    case EPROTO:
        text += ": the peer's endpoint speaks no XRC; accept it with an endpoint";
        break;
    default:
        text += ": " + cause(code);
    }
    return Error(code, call, std::move(text));
} catch (const std::bad_alloc&) {
    return without_text(code);
}

Error explain_xrcd(int code) noexcept
try {
    std::string text = "cannot open the XRC domain: ";
    switch (code) {
    case EINVAL:
        text += "it takes a regular file and 0, O_CREAT or O_CREAT|O_EXCL; without a file (-1) "
                "O_CREAT alone";
        break;
    case EBADF:
        text += "the file descriptor is not open, or was opened with O_PATH";
        break;
    case ENOENT:
        text += "no process has one open for this file; start the one that makes it, or pass "
                "O_CREAT";
        break;
    case EEXIST:
        text += "another process has made one for this file; open it without O_EXCL, or choose "
                "another file";
        break;
    case EACCES:
        text += "the file is not yours, nor may you write it; who shares the domain needs that "
                "right (chmod)";
        break;
    default:
        text += cause(code);
    }
    return Error(code, "DAPX_XRCD_OPEN", std::move(text));
} catch (const std::bad_alloc&) {
    return without_text(code);
}

} // namespace dapx::detail
