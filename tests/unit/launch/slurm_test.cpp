// What Slurm says of itself, read; and which plugin a library needs.
#include "launch/slurm.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "launch/srun.h"

namespace fermata::launch {
namespace {

using Words = std::vector<std::string>;

TEST(Slurm, PluginsAreTheNamesInTheList) {
    Words found = plugins_in(
        "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\nspecific pmix plugin versions "
        "available: "
        "pmix_v4\n");
    for (const char* name : {"pmix", "none", "pmi2", "pmix_v4"})
        EXPECT_NE(std::find(found.begin(), found.end(), name), found.end()) << name;
    EXPECT_EQ(plugin_for("openmpi", found), "pmix");
    EXPECT_EQ(plugin_for("mpich", found), "pmi2");
}

TEST(Slurm, AMissingPluginIsNotReplaced) {
    EXPECT_EQ(plugin_for("openmpi", {"none", "pmi2"}), "");
    EXPECT_EQ(plugin_for("openmpi", {"none", "pmix_v3"}), "pmix_v3");
    EXPECT_EQ(plugin_for("mpich", {"none", "pmix"}), "");
    EXPECT_EQ(plugin_for("mpich", plugins_in("srun: error: no configuration")), "");
}

TEST(Slurm, ProcessorsPerNode) {
    EXPECT_EQ(processors_in("2(x2),4"), (std::vector<unsigned>{2, 2, 4}));
    EXPECT_EQ(processors_in("16"), std::vector<unsigned>{16});
    for (const char* damaged : {"", "x", "2(x", "2(x3", "2(xa)", "2,,4", "2(x4000000000)"})
        EXPECT_TRUE(processors_in(damaged).empty()) << damaged;
}

TEST(Slurm, HostsOfAList) {
    EXPECT_EQ(hosts_in("fermata-a,fermata-b"), (Words{"fermata-a", "fermata-b"}));
    EXPECT_EQ(hosts_in("n[1-3,07],b"), (Words{"n1", "n2", "n3", "n07", "b"}));
    EXPECT_EQ(hosts_in("n[009-011]-ib"), (Words{"n009-ib", "n010-ib", "n011-ib"}));
    for (const char* damaged : {"", "a,,b", "n[1-", "n]1[", "n[3-1]", "n[a]", "n[1][2]", "n[0-4000000000]"})
        EXPECT_TRUE(hosts_in(damaged).empty()) << damaged;
}

TEST(Slurm, NodesWithoutThoseThatFailed) {
    ::setenv("SLURM_JOB_NODELIST", "n[1-3]", 1);
    ::setenv("SLURM_JOB_CPUS_PER_NODE", "2(x2),8", 1);
    auto left = nodes_left({"n1", "elsewhere"});
    EXPECT_EQ(left.size(), 2u);
    EXPECT_EQ(left["n3"], 8u);
    ::setenv("SLURM_JOB_CPUS_PER_NODE", "2(x2)", 1);
    EXPECT_TRUE(nodes_left({}).empty());
}

TEST(Slurm, SparesTakeThePlaceOfNodesThatFailed) {
    using Names = std::vector<std::string>;
    ::setenv("SLURM_JOB_NODELIST", "n[1-4]", 1);
    EXPECT_EQ(spare_nodes({}, 0), Names());
    EXPECT_EQ(spare_nodes({}, 1), Names({"n4"}));
    EXPECT_EQ(spare_nodes({"n2"}, 1), Names());
    EXPECT_EQ(spare_nodes({"n2"}, 2), Names({"n4"}));
    EXPECT_EQ(spare_nodes({"n4"}, 1), Names()) << "a spare has failed";
    EXPECT_THROW(spare_nodes({}, 4), Error);
}

}  // namespace
}  // namespace fermata::launch
