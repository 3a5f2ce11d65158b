// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "world.hpp"

#include <gtest/gtest.h>

namespace dapx::xrc::test {

/// A world in which nothing must go against the rules.
class Scene : public World {
public:
    using World::World;
    Scene(const Scene&) = delete;
    Scene(Scene&&) = delete;
    Scene& operator=(const Scene&) = delete;
    Scene& operator=(Scene&&) = delete;
    ~Scene()
    {
        for (const std::string& violation : violations())
            ADD_FAILURE() << violation;
    }

    void expect_all(dapx_status wanted) const
    {
        for (std::size_t i = 0; i < messages(); ++i)
            EXPECT_EQ(status(i), wanted) << "message " << i;
        if (wanted == DAPX_STATUS_SUCCESS) {
            EXPECT_EQ(responder.messages, messages());
        }
    }

    /// All before @p index succeeded, all behind it were flushed.
    void expect_failed(std::size_t index, dapx_status wanted) const
    {
        for (std::size_t i = 0; i < messages(); ++i)
            EXPECT_EQ(status(i), i < index    ? DAPX_STATUS_SUCCESS
                                 : i == index ? wanted
                                              : DAPX_STATUS_FLUSHED)
                << "message " << i;
    }
};

} // namespace dapx::xrc::test
