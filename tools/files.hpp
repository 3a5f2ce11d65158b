// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Files, read and written as a whole.
#pragma once

#include <dapx/error.hpp>

#include <cstddef>
#include <span>
#include <string>

#include <sys/types.h>

namespace tools {

/// Whether @p path is there; false if that cannot be told.
bool exists(const std::string& path);

/// All of @p path; nothing if there is no such file. Errors: as open(2) and read(2).
dapx::Result<std::string> read_file(const std::string& path);

/// Writes @p path anew, so that whoever reads it finds the old or the new bytes, also after the
/// machine failed. What is there and no regular file, such as a pipe, is written to.
/// @param mode of a new file; one that is there keeps its owner and mode.
/// Errors: as open(2), write(2), fsync(2) and rename(2); then the old file is as it was.
dapx::Result<void> write_file(const std::string& path, std::span<const std::byte> bytes,
                              mode_t mode = 0644);

/// The same of a text; an empty one removes the file. Errors: as unlink(2), too.
dapx::Result<void> replace_file(const std::string& path, const std::string& text);

} // namespace tools
