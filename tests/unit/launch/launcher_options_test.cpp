// mpiexec's own options among Fermata's: what is one, how many words follow, whose it is, and where ranks
// start.
#include "launch/launcher_options.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace fermata::launch {
namespace {

using Words = std::vector<std::string>;

std::string refused(const std::string& mpi, const Words& words) {
    try {
        check_launcher_options(mpi, words);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        return error.what();
    }
    return "";
}

TEST(LauncherOptions, TheTableSaysHowManyWordsFollow) {
    for (const char* word :
         {"--oversubscribe", "-oversubscribe", "--use-hwthread-cpus", "-genvall", "--wdir=/tmp"})
        EXPECT_EQ(words_after_launcher_option(word), 0u) << word;
    for (const char* word :
         {"-host", "--host", "-hostfile", "--bind-to", "--map-by", "-x", "-H", "-N", "-ppn", "-iface", "-f"})
        EXPECT_EQ(words_after_launcher_option(word), 1u) << word;
    for (const char* word : {"--mca", "-mca", "-genv", "-env"})
        EXPECT_EQ(words_after_launcher_option(word), 2u) << word;
    for (const char* word : {"host", "--x", "-", "--", "", "---host", "--nonsense", "-n", "-np", "-v", "-h"})
        EXPECT_FALSE(words_after_launcher_option(word)) << word;
}

TEST(LauncherOptions, EachIsSomeLibrarys) {
    EXPECT_EQ(refused("openmpi", {"--oversubscribe", "-x", "-genv", "--mca", "a", "b", "-host", "a,b"}), "");
    EXPECT_EQ(refused("mpich", {"-genv", "-x", "--mca", "-ppn", "2", "-host", "a,b"}), "");
    EXPECT_NE(refused("mpich", {"-host", "a", "-x", "A"}).find("-x is an option of Open MPI's mpiexec"),
              std::string::npos);
    EXPECT_NE(refused("openmpi", {"-ppn", "2"}).find("--mpi mpich"), std::string::npos);
}

TEST(LauncherOptions, SrunHasItsOwn) {
    EXPECT_EQ(words_after_launcher_option("-N2"), 0u);
    EXPECT_EQ(words_after_launcher_option("--ntasks-per-node"), 1u);
    EXPECT_EQ(words_after_launcher_option("--ntasks-per-node=2"), 0u);
    EXPECT_EQ(refused("srun", {"-N2", "-w", "a", "--cpu-bind=none", "--overlap"}), "");
    EXPECT_NE(refused("srun", {"-N", "2", "--map-by", "core"}).find("--mpi openmpi"), std::string::npos);
    EXPECT_NE(refused("openmpi", {"--ntasks-per-node=2"}).find("--launcher srun"), std::string::npos);
    EXPECT_TRUE(are_options_of("srun", {"-N", "2", "--exact"}));
    EXPECT_FALSE(are_options_of("srun", {"-N", "2", "--map-by", "core"}));
    EXPECT_TRUE(are_options_of("srun", {}));
}

TEST(LauncherOptions, SrunsOneByOne) {
    using Words = std::vector<std::string>;
    EXPECT_EQ(srun_words({"-lN2", "-c", "4", "-K", "-K0", "-QI5", "-Jx y", "-t5"}),
              (Words{"-l", "--nodes=2", "--cpus-per-task=4", "-K", "-K0", "-Q", "-I5", "-Jx y", "-t5"}));
    EXPECT_EQ(srun_words({"--cpus-per-t", "4", "--ntasks", "2", "--lab", "--mpi=pmix", "--unknown", "word"}),
              (Words{"--cpus-per-task=4", "--ntasks=2", "--label", "--mpi=pmix", "--unknown", "word"}));
    EXPECT_EQ(srun_words({"--nodes=1-2", "-i", "-n3", "--"}), (Words{"--nodes=1-2", "--input=-n3", "--"}));
}

TEST(LauncherOptions, TheLastWorkingDirectoryCounts) {
    EXPECT_EQ(working_directory_of({"--bind-to", "none", "--wdir", "a", "-wd", "b"}), "b");
    EXPECT_EQ(working_directory_of({"-wdir=c"}), "c");
    EXPECT_EQ(working_directory_of({"wdir", "c", "--wdir"}), "");
}

}  // namespace
}  // namespace fermata::launch
