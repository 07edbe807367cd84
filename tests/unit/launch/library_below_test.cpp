// What a renewal may change of the library below a job's ranks, and what stays from one to the next.
#include "launch/own/library_below.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "launch/library.h"

namespace fermata::launch::own {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class LibraryBelowTest : public testing::Test {
  protected:
    LibraryBelowTest() {
        char name[] = "/tmp/fermata-library-XXXXXX";
        directory_ = ::mkdtemp(name);
        for (const char* mpi : {"openmpi", "mpich"}) {
            const fs::path lower = directory_ / (std::string("lower-") + mpi);
            std::ofstream(lower) << "x";
            ::chmod(lower.c_str(), 0700);
        }
        ::setenv("FERMATA_LIBEXEC", directory_.c_str(), 1);
    }
    ~LibraryBelowTest() override {
        ::unsetenv("FERMATA_LIBEXEC");
        fs::remove_all(directory_);
    }
    Library library(const std::string& mpi) const {
        return {mpi, (directory_ / ("lower-" + mpi)).string(), "", ""};
    }
    static ExitCode refusal(LibraryBelow& below, const Renewal& wanted) {
        try {
            below.plan(wanted);
        } catch (const Error& error) {
            return error.code();
        }
        return ExitCode::ok;
    }
    fs::path directory_;
};

TEST_F(LibraryBelowTest, StaysUnlessAnotherIsNamed) {
    LibraryBelow below(library("mpich"));
    below.plan({});
    EXPECT_EQ(below.order(1).mpi, "mpich");
    EXPECT_EQ(below.order(1).lower, library("mpich").lower);
    below.plan({{}, "openmpi", ""});
    EXPECT_EQ(below.order(2).world, 2u);
    EXPECT_EQ(below.order(2).mpi, "openmpi");
    EXPECT_EQ(below.order(2).environment, (Words{"PMIX_MCA_gds=^shmem,shmem2,shmem3"}));
    EXPECT_EQ(below.order(2).reach.folder, "");
}

TEST_F(LibraryBelowTest, WhatWasNotTakenIsForgotten) {
    LibraryBelow below(library("mpich"));
    below.plan({{"A=b"}, "openmpi", ""});
    below.plan({});
    EXPECT_EQ(below.order(1).mpi, "mpich");
    EXPECT_EQ(below.order(1).environment, Words{});
}

TEST_F(LibraryBelowTest, VariablesThatWereTakenStayAndTheNewestCounts) {
    LibraryBelow below(library("mpich"));
    below.plan({{"A=b"}, "", "-genv C d"});
    below.taken();
    below.plan({{"A=e"}, "", ""});
    EXPECT_EQ(below.order(1).environment, (Words{"C=d", "A=e"}));
}

TEST_F(LibraryBelowTest, RanksStayWhereTheyAre) {
    LibraryBelow below(library("mpich"));
    for (const char* words : {"--hosts a,b", "-f hosts", "-ppn 2", "--map-by node", "--bind-to none",
                              "-wdir /", "--oversubscribe", "--no-such-word"})
        EXPECT_EQ(refusal(below, {{}, "", words}), ExitCode::usage) << words;
    EXPECT_EQ(refusal(below, {{}, "nompi", ""}), ExitCode::usage);
    EXPECT_EQ(refusal(below, {{}, "/nowhere", ""}), ExitCode::usage);
    fs::remove(library("mpich").lower);
    EXPECT_EQ(refusal(below, {}), ExitCode::failed);
    EXPECT_EQ(below.order(1).mpi, "mpich");
}

TEST(HidesLostNodes, IsOpenMpisFromVersion5On) {
    EXPECT_TRUE(hides_lost_nodes("Open MPI v5.0.7, package: Debian OpenMPI, ident: 5.0.7, repo rev: v5.0.7"));
    EXPECT_TRUE(hides_lost_nodes("Open MPI v6.0.0rc2, package: Debian"));
    EXPECT_TRUE(hides_lost_nodes("Open MPI v10.0"));
    EXPECT_FALSE(hides_lost_nodes("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"));
    EXPECT_FALSE(hides_lost_nodes("MPICH Version: 4.0.2"));
    EXPECT_FALSE(hides_lost_nodes("openmpi"));
    EXPECT_FALSE(hides_lost_nodes(""));
}

}  // namespace
}  // namespace fermata::launch::own
