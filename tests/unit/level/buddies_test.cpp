// Who keeps whose second copy: never the node itself, never one that fails with it.
#include "level/buddies.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"

namespace fermata::level {
namespace {

std::vector<std::string> nodes(size_t count) {
    std::vector<std::string> all;
    for (size_t i = 0; i < count; ++i) all.push_back(fmt::format("n{}", i));
    return all;
}

TEST(Buddies, WithoutDomainsTheyStandInARing) {
    for (size_t count : {2u, 3u, 5u, 64u}) {
        const Buddies buddies(nodes(count), Domains(), false);
        EXPECT_EQ(buddies.why_not(), "");
        EXPECT_EQ(buddies.warning(), "");
        EXPECT_EQ(buddies.all().size(), count);
        std::set<std::string> used;
        for (auto& [node, buddy] : buddies.all()) {
            EXPECT_NE(node, buddy);
            used.insert(buddy);
        }
        EXPECT_EQ(used.size(), count);  // each is the buddy of one
    }
}

TEST(Buddies, OneNodeHasNone) {
    EXPECT_EQ(Buddies({"a", "a"}, Domains(), true).why_not(),
              "the job is on one node, and a buddy is another one");
}

// All ways to put up to six nodes into domains.
TEST(Buddies, AlwaysOfAnotherDomain) {
    for (size_t count = 2; count <= 6; ++count)
        for (size_t way = 0, ways = static_cast<size_t>(std::pow(count, count)); way < ways; ++way) {
            std::string text;
            std::set<size_t> domains;
            for (size_t i = 0, rest = way; i < count; ++i, rest /= count) {
                text += fmt::format("n{} d{}\n", i, rest % count);
                domains.insert(rest % count);
            }
            const Domains all = Domains::parse(text, "file");
            const Buddies buddies(nodes(count), all, false);
            if (domains.size() == 1) {
                EXPECT_NE(buddies.why_not().find("failure domain"), std::string::npos) << text;
                const Buddies anyway(nodes(count), all, true);
                EXPECT_EQ(anyway.why_not(), "");
                EXPECT_NE(anyway.warning(), "");
                for (auto& [node, buddy] : anyway.all()) EXPECT_NE(node, buddy);
                EXPECT_EQ(anyway.all().size(), count);
                continue;
            }
            ASSERT_EQ(buddies.all().size(), count) << text << buddies.why_not();
            for (auto& [node, buddy] : buddies.all()) ASSERT_NE(all.of(node), all.of(buddy)) << text << node;
        }
}

TEST(Domains, AreReadFromLines) {
    const Domains domains = Domains::parse("# switches\n n1 s1 # left\n\nn2\ts2\n", "file");
    EXPECT_EQ(domains.of("n1"), "s1");
    EXPECT_EQ(domains.of("n2"), "s2");
    EXPECT_EQ(domains.unnamed({"n1", "n3"}), std::vector<std::string>{"n3"});
    EXPECT_NE(domains.of("n3"), domains.of("n4"));
    EXPECT_TRUE(Domains().unnamed({"n1"}).empty());
    for (const char* bad : {"", "# nothing\n", "n1\n", "n1 s1 more\n", "n1 s1\nn1 s2\n"}) try {
            Domains::parse(bad, "file");
            FAIL() << bad;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
            EXPECT_NE(std::string(error.what()).find("--domains"), std::string::npos) << error.what();
        }
    EXPECT_THROW(Domains::from_file("/nowhere"), Error);
}

}  // namespace
}  // namespace fermata::level
