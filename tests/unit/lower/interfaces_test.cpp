// Which images of other builds are continued, and what is said of the others.
#include "lower/interfaces.h"

#include <gtest/gtest.h>

#include <iterator>

#include "fermata_interface.h"
#include "fermata_table.h"
#include "split/bridge.h"

namespace fermata::lower {
namespace {

const OwnInterface kOwn = {split::kBridgeVersion, split::interface_version(mpi::kAbiHash)};

Anchors of(uint32_t bridge, uint32_t number) { return {1, 2, bridge, number}; }

TEST(Interfaces, OwnIsContinued) { EXPECT_EQ(why_not_continued(of(kOwn.bridge, kOwn.number), kOwn), ""); }

// What crosses the halves has changed: docs/upgrades.md says what to do.
TEST(Interfaces, OwnIsRecorded) {
    const auto& last = *std::rbegin(split::kKnownInterfaces);
    EXPECT_EQ(last.number, kOwn.number)
        << "see docs/upgrades.md, then tools/interface.py src record build NOTE";
    EXPECT_EQ(last.bridge, kOwn.bridge);
}

TEST(Interfaces, EarlierOnesAreContinued) {
    for (const auto& one : split::kKnownInterfaces) {
        const std::string why = why_not_continued(of(one.bridge, one.number), kOwn);
        EXPECT_EQ(why.empty(), one.continued) << std::hex << one.number << ": " << why;
    }
}

TEST(Interfaces, OthersAreRefused) {
    const auto& first = split::kKnownInterfaces[0];
    const std::string unknown = why_not_continued(of(kOwn.bridge, 0x0badc0de), kOwn);
    EXPECT_NE(unknown.find("another interface"), std::string::npos) << unknown;
    EXPECT_NE(unknown.find("0badc0de"), std::string::npos) << unknown;
    // An earlier build does not continue a later one's.
    const std::string later = why_not_continued(of(kOwn.bridge, kOwn.number), {first.bridge, first.number});
    EXPECT_NE(later.find("that version or a later release"), std::string::npos) << later;
    // One whose interface nobody has looked at continues its own only.
    EXPECT_NE(why_not_continued(of(kOwn.bridge, kOwn.number), {kOwn.bridge, 0x0badc0de}), "");
    // The number of one, the bridge of another.
    EXPECT_NE(why_not_continued(of(first.bridge + 100, first.number), kOwn), "");
}

}  // namespace
}  // namespace fermata::lower
