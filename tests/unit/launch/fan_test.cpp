// Who starts whom: everybody once, by somebody who was started before.
#include "launch/own/fan.h"

#include <gtest/gtest.h>

#include <set>

namespace fermata::launch::own {
namespace {

TEST(Fan, EveryNodeIsStartedOnceByOneThatHasCome) {
    for (size_t width : {1u, 2u, 3u, 64u})
        for (uint32_t count : {0u, 1u, 2u, 5u, 64u, 65u, 300u}) {
            std::vector<uint32_t> nodes;
            for (uint32_t i = 0; i < count; ++i)
                nodes.push_back(2 * i + 1);  // others are of this host, or unneeded
            const Fan fan(nodes, width);
            std::vector<uint32_t> ready = fan.by_root();
            EXPECT_LE(ready.size(), width);
            std::set<uint32_t> started(ready.begin(), ready.end());
            for (size_t at = 0; at < ready.size(); ++at)
                for (uint32_t below : fan.by(ready[at])) {
                    EXPECT_TRUE(started.insert(below).second) << below;
                    ready.push_back(below);
                }
            EXPECT_EQ(started, std::set<uint32_t>(nodes.begin(), nodes.end())) << width << ", " << count;
        }
    EXPECT_TRUE(Fan({1, 2, 3}, 1).by(4).empty());
}

}  // namespace
}  // namespace fermata::launch::own
