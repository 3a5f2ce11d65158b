// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "privilege.hpp"

#include <charconv>
#include <cstdint>
#include <fstream>

#include <linux/capability.h>
#include <sys/stat.h>

namespace tools {

bool has_capability(unsigned capability)
{
    std::ifstream file("/proc/self/status");
    for (std::string word; file >> word;) {
        if (word != "CapEff:" || !(file >> word))
            continue;
        std::uint64_t set = 0;
        std::from_chars(word.data(), word.data() + word.size(), set, 16);
        return ((set >> capability) & 1U) != 0;
    }
    return false;
}

bool sees_all()
{
    // The first user namespace, whose capabilities are good for any network namespace.
    constexpr ::ino_t first = 0xEFFFFFFD;
    struct ::stat status{};
    return has_capability(CAP_NET_ADMIN) && ::stat("/proc/self/ns/user", &status) == 0 &&
           status.st_ino == first;
}

std::string none_text(const std::string& what, bool all)
{
    return "no " + what +
           (all ? "\n"
                : " that you may see (without CAP_NET_ADMIN: those of your own processes)\n");
}

} // namespace tools
