// How many ranks srun's own words ask for.
#include "life/options.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace fermata::life {
namespace {

SubmitOptions of(const std::string& words, int ranks = 0,
                 launch::LauncherName launcher = launch::LauncherName::srun) {
    SubmitOptions options;
    options.launcher = launcher;
    options.mpiexec_args = words;
    options.ranks = ranks;
    take_ranks_of_srun(options);
    return options;
}

TEST(RanksOfSrun, AreTheJobs) {
    for (const char* words :
         {"-n 4 -N 2", "-n4 -N2", "-lN2 -n4", "--ntasks=4 --nodes 2", "--ntasks 4 --nodes=2"}) {
        EXPECT_EQ(of(words).ranks, 4) << words;
        EXPECT_NE(of(words).mpiexec_args.find("--nodes=2"), std::string::npos) << words;
        EXPECT_EQ(of(words).mpiexec_args.find("ntasks"), std::string::npos) << words;
    }
    EXPECT_EQ(of("--ntasks-per-node=4").ranks, 0);
    EXPECT_EQ(of("-J -n4 -w -n5").ranks, 0) << "a name and a host";
    EXPECT_EQ(of("-n 4", 4).ranks, 4);
}

TEST(RanksOfSrun, AreRefusedWhereTheyCannotBe) {
    EXPECT_THROW(of("-n 4", 3), Error);
    for (const char* words : {"-n x", "-n 0", "-n -1", "-n 4k", "-n 99999999", "--ntasks="})
        EXPECT_THROW(of(words), Error) << words;
}

TEST(RanksOfSrun, AreNotLookedForElsewhere) {
    const SubmitOptions options = of("-n 4", 0, launch::LauncherName::mpiexec);
    EXPECT_EQ(options.ranks, 0);
    EXPECT_EQ(options.mpiexec_args, "-n 4");
}

}  // namespace
}  // namespace fermata::life
