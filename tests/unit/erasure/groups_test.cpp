// Groups over failure domains.
#include "erasure/groups.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "base/error.h"

namespace fermata::erasure {
namespace {

std::vector<std::string> nodes(size_t count) {
    std::vector<std::string> domains;
    for (size_t i = 0; i < count; ++i) domains.push_back(fmt::format("n{:04}", i));
    return domains;
}

std::vector<size_t> sizes(const std::vector<std::vector<size_t>>& groups) {
    std::vector<size_t> all;
    for (auto& group : groups) all.push_back(group.size());
    return all;
}

TEST(Groups, WhatIsLeftOverIsSmallerOrJoins) {
    const Scheme scheme = *Scheme::of(4, 2);
    const std::map<size_t, std::vector<size_t>> wanted = {
        {3, {3}},     {4, {4}},     {5, {5}},     {6, {6}},     {7, {7}},     {8, {8}},       {9, {9}},
        {10, {6, 4}}, {11, {6, 5}}, {12, {6, 6}}, {13, {7, 6}}, {15, {8, 7}}, {16, {6, 6, 4}}};
    for (auto& [count, expected] : wanted)
        EXPECT_EQ(sizes(groups_of(nodes(count), scheme)), expected) << count;
    EXPECT_EQ(groups_of(nodes(12), scheme)[0], (std::vector<size_t>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(groups_of(nodes(13), scheme)[0], (std::vector<size_t>{0, 1, 2, 3, 4, 5, 12}));
}

TEST(Groups, TooFewDomainsAreRefused) {
    try {
        groups_of(nodes(2), *Scheme::of(4, 2));
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(),
                     "rs:4+2 wants at least 3 failure domains to bear the loss of 2, and there are 2: give "
                     "it more nodes");
    }
    EXPECT_THROW(groups_of({"a", "a", "a", "a", "b", "b"}, *Scheme::of(4, 2)), Error);
    EXPECT_THROW(groups_of({}, *Scheme::of(1, 1)), Error);
    // Most nodes in one domain: they find no others to be with.
    EXPECT_THROW(groups_of({"a", "a", "a", "a", "b", "c"}, *Scheme::of(2, 1)), Error);
}

TEST(Groups, NodesOfADomainAreApart) {
    const auto groups = groups_of({"a", "a", "b", "b", "c", "c"}, *Scheme::of(2, 1));
    EXPECT_EQ(groups, (std::vector<std::vector<size_t>>{{0, 2, 4}, {1, 3, 5}}));
}

TEST(Groups, DrawnOnesBearTheirLosses) {
    std::mt19937 random(37);
    size_t refused = 0, made = 0;
    for (int round = 0; round < 3000; ++round) {
        const Scheme scheme = *Scheme::of(1 + random() % 8, 1 + random() % 3);
        std::vector<std::string> domains;
        const size_t different = 1 + random() % 30;
        for (size_t i = 1 + random() % 60; i > 0; --i)
            domains.push_back(fmt::format("d{}", random() % different));
        try {
            const auto groups = groups_of(domains, scheme);
            std::set<size_t> seen;
            for (auto& group : groups) {
                std::set<std::string> apart;
                for (size_t node : group) {
                    EXPECT_TRUE(seen.insert(node).second);
                    EXPECT_TRUE(apart.insert(domains.at(node)).second);
                }
                EXPECT_GT(group.size(), scheme.losses());
            }
            EXPECT_EQ(seen.size(), domains.size());
            EXPECT_EQ(groups, groups_of(domains, scheme));
            ++made;
        } catch (const Error&) {
            ++refused;
        }
    }
    EXPECT_GT(made, 1000u);
    EXPECT_GT(refused, 10u);
}

}  // namespace
}  // namespace fermata::erasure
