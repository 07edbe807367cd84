// Encoding and rebuilding over directories: what comes back is what was there, or nothing does.
#include <algorithm>

#include "base/error.h"
#include "members.h"

namespace fermata::erasure {
namespace {

namespace fs = std::filesystem;
using RebuildTest = Members;

TEST_F(RebuildTest, AnyLossesOfAnyGroup) {
    const size_t one = 1 << 20;
    const std::vector<std::vector<std::vector<size_t>>> groups = {
        {{3 * one}, {3 * one}, {3 * one}},                          // one rank a node
        {{5 * one + 1, 300}, {12345}, {2 * one}, {one, one}, {0}},  // unequal, odd
        {{one - 1}, {}, {one}, {one + 1}},                          // a node that has next to nothing
        {{100}, {100}},
        {{4 * one}, {4 * one}, {4 * one}, {4 * one}, {4 * one}, {4 * one}, {4 * one}},
    };
    for (const auto& sizes : groups)
        for (uint32_t losses = 1; losses < std::min<size_t>(sizes.size(), 4); ++losses) {
            fs::remove_all(root_);
            wanted_.clear();
            make(sizes);
            const Group group = this->group(sizes.size(), losses);
            encode(group);
            for (size_t i = 0; i < sizes.size(); ++i)
                EXPECT_EQ(fs::file_size(at(i) / kParityFile), read_parity_head(folder(i)).file_bytes());
            std::vector<bool> lost(sizes.size());
            std::fill(lost.begin(), lost.begin() + losses, true);
            std::shuffle(lost.begin(), lost.end(), random_);
            Folders source = all(sizes.size(), lost);
            Rebuild rebuild(group, source);
            for (uint32_t i = 0; i < sizes.size(); ++i) {
                if (!lost[i]) continue;
                const fs::path spare = root_ / "spare";
                fs::remove_all(spare);
                fs::create_directories(spare);
                for (size_t f = 0; f < group.contents(Member{i}).files.size(); ++f) {
                    rebuild.file(Member{i}, f, files::Folder::at(spare));
                    const std::string& name = group.contents(Member{i}).files[f].name;
                    EXPECT_EQ(content(spare / name), wanted_.at(at(i) / name)) << name;
                }
                EXPECT_FALSE(fs::exists(spare / kRebuiltFile));
            }
        }
}

TEST_F(RebuildTest, OneLossTooManyIsRefusedAndLeavesNothing) {
    make({{2 << 20}, {2 << 20}, {2 << 20}, {2 << 20}});
    const Group group = this->group(4, 2);
    encode(group);
    Folders source = all(4, {true, true, true, false});
    Rebuild rebuild(group, source);
    fs::create_directories(root_ / "spare");
    try {
        rebuild.file(Member{0}, group.contents(Member{0}).files.size() - 1,
                     files::Folder::at(root_ / "spare"));
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("of 4 nodes that bear 2 losses, more are lost"),
                  std::string::npos)
            << error.what();
    }
    EXPECT_TRUE(fs::is_empty(root_ / "spare"));
}

// Wherever a byte flips, in images or parity, what is rebuilt is right.
TEST_F(RebuildTest, AFlippedByteIsALossOfItsPiece) {
    make({{3 << 20}, {1 << 20, 1 << 20}, {2 << 20}, {3 << 20}, {2 << 20}});
    const Group group = this->group(5, 2);
    encode(group);
    for (int round = 0; round < 60; ++round) {
        const auto lost = static_cast<uint32_t>(random_() % 5);
        auto other = (lost + 1 + random_() % 4) % 5;
        const auto& files = group.contents(Member{static_cast<uint32_t>(other)}).files;
        fs::path victim =
            at(other) / (round % 2 ? std::string(kParityFile) : files[random_() % files.size()].name);
        if (fs::file_size(victim) == 0) continue;
        flip(victim, random_() % fs::file_size(victim));
        std::vector<bool> gone(5);
        gone[lost] = true;
        Folders source = all(5, gone);
        Rebuild rebuild(group, source);
        fs::create_directories(root_ / "spare");
        for (size_t f = 0; f < group.contents(Member{lost}).files.size(); ++f) {
            rebuild.file(Member{lost}, f, files::Folder::at(root_ / "spare"));
            const std::string& name = group.contents(Member{lost}).files[f].name;
            EXPECT_EQ(content(root_ / "spare" / name), wanted_.at(at(lost) / name)) << name;
        }
        fs::remove_all(root_ / "spare");
        // Repaired in its place for the next round.
        if (round % 2) {
            Folders intact = all(5);
            write_parity(group, Member{static_cast<uint32_t>(other)}, intact, folder(other));
        } else {
            Folders damaged = all(5);
            Rebuild repair(group, damaged);
            for (size_t f = 0; f < files.size(); ++f) {
                repair.file(Member{static_cast<uint32_t>(other)}, f, folder(other));
                EXPECT_EQ(content(at(other) / files[f].name), wanted_.at(at(other) / files[f].name));
            }
        }
    }
}

TEST_F(RebuildTest, DamageBeyondWhatIsBorneIsFound) {
    make({{1 << 20}, {1 << 20}, {1 << 20}});
    const Group group = this->group(3, 1);
    encode(group);
    flip(at(1) / image::image_name(Rank(1)), 77);
    Folders source = all(3, {true, false, false});
    Rebuild rebuild(group, source);
    fs::create_directories(root_ / "spare");
    bool refused = false;
    for (size_t f = 0; f < group.contents(Member{0}).files.size(); ++f) try {
            rebuild.file(Member{0}, f, files::Folder::at(root_ / "spare"));
            const std::string& name = group.contents(Member{0}).files[f].name;
            EXPECT_EQ(content(root_ / "spare" / name), wanted_.at(at(0) / name));
        } catch (const Error&) {
            refused = true;
        }
    EXPECT_TRUE(refused);
    EXPECT_FALSE(rebuild.losses().empty());
}

TEST_F(RebuildTest, ParityOfAnotherGroupIsNotUsed) {
    make({{1 << 20}, {1 << 20}, {1 << 20}});
    const Group old = this->group(3, 1);
    encode(old);
    // The same generation once more, with other images: the parity of two is still that of before.
    for (uint32_t i = 0; i < 3; ++i) put(i, image::image_name(Rank(i)), 1 << 20);
    const Group group = this->group(3, 1);
    Folders here = all(3);
    write_parity(group, Member{0}, here, folder(0));
    Folders source = all(3, {true, false, false});
    Rebuild rebuild(group, source);
    fs::create_directories(root_ / "spare");
    EXPECT_THROW(rebuild.file(Member{0}, group.contents(Member{0}).files.size() - 1,
                              files::Folder::at(root_ / "spare")),
                 Error);
}

TEST_F(RebuildTest, WhatChangedBeforeItWasEncodedIsFound) {
    make({{1 << 20}, {1 << 20}, {1 << 20}});
    const Group group = this->group(3, 1);
    flip(at(1) / image::image_name(Rank(1)), 123456);
    uint32_t refused = 0;
    for (uint32_t i = 0; i < 3; ++i) try {
            Folders source = all(3);
            write_parity(group, Member{i}, source, folder(i));
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find("host1"), std::string::npos) << error.what();
            EXPECT_FALSE(fs::exists(at(i) / kParityFile));
            EXPECT_FALSE(fs::exists(at(i) / kUnfinishedParity));
            ++refused;
        }
    EXPECT_GE(refused, 1u);
}

TEST_F(RebuildTest, ACheckThatFailsLeavesNothing) {
    make({{1000}, {1000}});
    const Group group = this->group(2, 1);
    encode(group);
    Folders source = all(2, {true, false});
    Rebuild rebuild(group, source);
    fs::create_directories(root_ / "spare");
    EXPECT_THROW(
        rebuild.file(Member{0}, 0, files::Folder::at(root_ / "spare"),
                     [](const files::Folder&, const std::string&) { fail("it is not of this manifest"); }),
        Error);
    EXPECT_FALSE(fs::exists(root_ / "spare" / kRebuiltFile));
}

}  // namespace
}  // namespace fermata::erasure
