// Which MPICH gets another network module, by what it says of itself.
#include "lower/netmod.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace fermata::lower {
namespace {

std::string mpich(const char* version, const char* device, const char* configured = "--prefix=/usr") {
    return std::string("MPICH Version:      ") + version +
           "\nMPICH Release date: Fri Sep 25 20:45:26 UTC 2026\n" +
           "MPICH ABI:          18:2:6\nMPICH Device:       " + device +
           "\nMPICH configure:    " + configured + "\nMPICH CC:           cc\n";
}

TEST(Netmod, UcxWithSharedMemoryIsAvoidedFromMpich43On) {
    for (const char* version : {"4.3.0", "4.3.2", "5.0.2", "5.1b1", "10.0"})
        EXPECT_EQ(netmod_for(mpich(version, "ch4:ucx ofi"), ""), Netmod::ofi) << version;
    for (const char* version : {"4.0.2", "4.2.3"})
        EXPECT_EQ(netmod_for(mpich(version, "ch4:ucx ofi"), ""), Netmod::as_it_is) << version;
}

TEST(Netmod, WhatDoesNotUseUcxStays) {
    for (const char* device : {"ch4:ofi", "ch4:ofi ucx", "ch3:nemesis", "ch4:ofiucx", "ch4:ucx"})
        EXPECT_EQ(netmod_for(mpich("5.0.2", device), ""), Netmod::as_it_is) << device;
}

TEST(Netmod, UcxAloneLosesWhereSharedMemoryWasConfigured) {
    auto alone = [](const char* configured) { return netmod_for(mpich("5.0.2", "ch4:ucx", configured), ""); };
    EXPECT_EQ(alone("--with-device=ch4:ucx --with-ch4-shmmods=posix"), Netmod::losing);
    EXPECT_EQ(alone("--with-ch4-shmmods=none --with-device=ch4:ucx"), Netmod::as_it_is);
    EXPECT_EQ(alone("--with-ch4-shmmods=auto"), Netmod::as_it_is);
}

TEST(Netmod, TheUserMayChoose) {
    EXPECT_EQ(netmod_for(mpich("5.0.2", "ch4:ucx ofi"), "ofi"), Netmod::as_it_is);
    EXPECT_EQ(netmod_for(mpich("5.0.2", "ch4:ucx ofi"), "ucx"), Netmod::losing);
    EXPECT_EQ(netmod_for(mpich("5.0.2", "ch4:ofi ucx"), "ucx"), Netmod::losing);
}

TEST(Netmod, OtherLibrariesAndDamagedTexts) {
    for (const char* text : {"", "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4",
                             "Intel(R) MPI Library 2021.19 for Linux* OS\n", "MPICH Version: 5.0.2",
                             "MPICH Device: ch4:ucx ofi", "MPICH Version: x\nMPICH Device: ch4:ucx ofi",
                             "MPICH Version: 5\nMPICH Device: ch4:ucx ofi", "MPICH Version: \nMPICH Device:"})
        EXPECT_EQ(netmod_for(text, ""), Netmod::as_it_is) << text;
}

// The environment of a rank, as a launcher makes it.
class Rank : public testing::Test {
  protected:
    void SetUp() override {
        for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_SIZE",
                                 "SLURM_STEP_NUM_NODES", "MPIR_CVAR_CH4_NETMOD", "MPICH_CH4_NETMOD"})
            ::unsetenv(name);
    }
    static std::string during_start() {
        NetmodChoice choice(mpich("5.0.2", "ch4:ucx ofi"));
        const char* value = std::getenv("MPIR_CVAR_CH4_NETMOD");
        EXPECT_EQ(choice.line().empty(), value == nullptr && std::getenv("MPICH_CH4_NETMOD") == nullptr);
        return value != nullptr ? value : "";
    }
};

TEST_F(Rank, SetsTheVariableForTheTimeOfTheStartOnly) {
    ::setenv("MPI_LOCALNRANKS", "2", 1);
    ::setenv("PMI_SIZE", "4", 1);
    EXPECT_EQ(during_start(), "ofi");
    EXPECT_EQ(std::getenv("MPIR_CVAR_CH4_NETMOD"), nullptr);
    ::setenv("MPIR_CVAR_CH4_NETMOD", "ucx", 1);
    EXPECT_EQ(during_start(), "ucx");
    EXPECT_STREQ(std::getenv("MPIR_CVAR_CH4_NETMOD"), "ucx");
}

TEST_F(Rank, LeavesAJobOfOneNodeAlone) {
    ::setenv("MPI_LOCALNRANKS", "4", 1);
    ::setenv("PMI_SIZE", "4", 1);
    EXPECT_EQ(during_start(), "");
    ::unsetenv("MPI_LOCALNRANKS");  // srun
    EXPECT_EQ(during_start(), "ofi");
    ::setenv("SLURM_STEP_NUM_NODES", "1", 1);
    EXPECT_EQ(during_start(), "");
    ::setenv("SLURM_STEP_NUM_NODES", "2", 1);
    EXPECT_EQ(during_start(), "ofi");
}

TEST_F(Rank, KnowsTheOlderNamesOfTheVariable) {
    ::setenv("MPICH_CH4_NETMOD", "ucx", 1);
    EXPECT_EQ(during_start(), "");
}

}  // namespace
}  // namespace fermata::lower
