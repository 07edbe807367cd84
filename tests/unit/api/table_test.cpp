// Tables of images, and what a program may and may not restore into.
#include "api/table.h"

#include <gtest/gtest.h>

#include "api/fault.h"
#include "base/error.h"

namespace fermata::api {
namespace {

State some_state(std::vector<double>& memory, int64_t first = 0, int64_t extent = 4) {
    State state;
    const int64_t global[] = {8, 3}, offset[] = {first, 0}, part[] = {extent, 3};
    state.protect_array("psi", memory.data(), FERMATA_DOUBLE, 2, global, offset, part, nullptr);
    state.protect(Kind::global, "time", memory.data(), FERMATA_DOUBLE, 1);
    state.protect(Kind::local, "seed", memory.data(), FERMATA_UINT64, 2);
    return state;
}

Table table_of(const State& state) {
    Table table;
    table.step = -3;
    uint64_t address = 1 << 20;
    for (auto& [name, entry] : state.entries()) {
        SavedEntry& saved = table.entries[name];
        static_cast<Shape&>(saved) = entry;
        for (const Part& part : entry.parts) {
            saved.parts.push_back({part.grid, address, static_cast<uint64_t>(entry.bytes_of(part))});
            address += 1 << 20;
        }
    }
    return table;
}

TEST(Table, ComesBackAsItWas) {
    std::vector<double> memory(64);
    Table table = table_of(some_state(memory));
    std::vector<std::byte> bytes = table.encoded();
    Table again = Table::decoded(bytes.data(), bytes.size(), "here");
    EXPECT_EQ(again.step, -3);
    EXPECT_EQ(again.encoded(), bytes);
    EXPECT_EQ(again.entries.at("psi").parts.at(0).grid, table.entries.at("psi").parts.at(0).grid);
}

TEST(Table, EveryCutAndEveryFlippedByteIsReadOrRefused) {
    std::vector<double> memory(64);
    std::vector<std::byte> bytes = table_of(some_state(memory)).encoded();
    for (size_t size = 0; size < bytes.size(); ++size)
        EXPECT_THROW(Table::decoded(bytes.data(), size, "here"), Error) << size;
    for (size_t at = 0; at < bytes.size(); ++at)
        for (int bit : {0, 1, 5, 7}) {
            auto changed = bytes;
            changed[at] ^= std::byte(1 << bit);
            try {
                Table::decoded(changed.data(), changed.size(), "here");
            } catch (const Error&) {
            }
        }
}

TEST(Table, WhatDoesNotFitIsSaid) {
    std::vector<double> memory(64);
    State saved = some_state(memory);
    Table table = table_of(saved);
    EXPECT_EQ(why_no_match(saved, table, true), "");
    EXPECT_NE(why_no_match(saved, table, false).find("seed"), std::string::npos);  // is each rank's own
    State other = saved;
    other.forget("seed");
    EXPECT_NE(why_no_match(other, table, true).find("seed was saved"), std::string::npos);
    other.protect(Kind::local, "seed", memory.data(), FERMATA_UINT32, 2);
    EXPECT_NE(why_no_match(other, table, true).find("uint32"), std::string::npos);
    State more = saved;
    more.protect(Kind::global, "new", memory.data(), FERMATA_DOUBLE, 1);
    EXPECT_NE(why_no_match(more, table, true).find("new is protected"), std::string::npos);
    State wider = saved;
    const int64_t global[] = {9, 3}, zero[] = {0, 0}, part[] = {1, 3};
    wider.protect_array("psi", memory.data(), FERMATA_DOUBLE, 2, global, zero, part, nullptr);
    EXPECT_NE(why_no_match(wider, table, true).find("[9][3]"), std::string::npos);
}

TEST(State, ARankThatSaysSomethingElseHasAnotherFingerprint) {
    std::vector<double> memory(64);
    State one = some_state(memory), same = some_state(memory, 4, 2);
    EXPECT_EQ(fingerprint(one), fingerprint(same));  // another part of the same array
    same.protect(Kind::global, "time", memory.data(), FERMATA_DOUBLE, 2);
    EXPECT_NE(fingerprint(one), fingerprint(same));
}

TEST(State, CallsThatCannotBeRightChangeNothing) {
    std::vector<double> memory(64);
    State state = some_state(memory);
    const uint64_t before = fingerprint(state);
    const int64_t n[] = {8, 3}, bad[] = {7, 0}, part[] = {4, 3};
    EXPECT_THROW(state.protect(Kind::global, "", memory.data(), FERMATA_DOUBLE, 1), Fault);
    EXPECT_THROW(state.protect(Kind::global, std::string(201, 'a').c_str(), memory.data(), FERMATA_DOUBLE, 1),
                 Fault);
    EXPECT_THROW(state.protect(Kind::global, "x", memory.data(), 99, 1), Fault);
    EXPECT_THROW(state.protect(Kind::global, "x", memory.data(), FERMATA_DOUBLE, -1), Fault);
    EXPECT_THROW(state.protect(Kind::global, "x", nullptr, FERMATA_DOUBLE, 1), Fault);
    EXPECT_THROW(state.protect_array("psi", memory.data(), FERMATA_DOUBLE, 2, n, bad, part, nullptr), Fault);
    EXPECT_THROW(state.protect_array("psi", memory.data(), FERMATA_DOUBLE, 9, n, bad, part, nullptr), Fault);
    EXPECT_THROW(state.add_part("none", memory.data(), bad, part, nullptr), Fault);
    EXPECT_THROW(state.forget("none"), Fault);
    EXPECT_THROW(state.protect_object("x", {}), Fault);
    EXPECT_EQ(fingerprint(state), before);
}

}  // namespace
}  // namespace fermata::api
