// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

/// Marks what libdapx.so exports; everything else is hidden.
#define DAPX_EXPORT __attribute__((visibility("default")))
