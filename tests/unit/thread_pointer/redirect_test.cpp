// Crossings that leave FS alone: what the lower half does then, and when it cannot be so any longer.
#include <gtest/gtest.h>

#include <cstdlib>

#include "../split/run_mini.h"

namespace {

Outcome redirected(const char* what, const char* thread_pointer = nullptr) {
    if (thread_pointer != nullptr) setenv("FERMATA_THREAD_POINTER", thread_pointer, 1);
    Outcome outcome = run(std::string(REDIRECTED) + " " + what);
    unsetenv("FERMATA_THREAD_POINTER");
    return outcome;
}

TEST(Redirect, LowerCodeWorksWithTheUpperHalfsFs) { EXPECT_EQ(redirected("keep").output, "good\n"); }

TEST(Redirect, OrWithTheLowerHalfs) { EXPECT_EQ(redirected("keep", "switch").output, "good\n"); }

TEST(Redirect, PoisonIsNeverUsed) { EXPECT_EQ(redirected("keep", "poison").output, "good\n"); }

TEST(Redirect, ALibraryThatNeedsFsIsGivenIt) { EXPECT_EQ(redirected("doubtful").output, "good\n"); }

TEST(Redirect, SoIsANamespaceOfItsOwn) {
    EXPECT_EQ(redirected("namespace").output, "good\n");
    setenv("LD_AUDIT", LIBRARIES "/libaudit.so", 1);
    EXPECT_EQ(redirected("keep").output,
              "redirected: libraries in a namespace of their own (LD_AUDIT, dlmopen)\n");
    unsetenv("LD_AUDIT");
}

TEST(Redirect, NotUnderTheFeetOfAnotherThread) {
    Outcome outcome = redirected("doubtful-late");
    EXPECT_EQ(outcome.code, 70);
    EXPECT_NE(outcome.output.find("libdoubtful.so: code at 0x"), std::string::npos) << outcome.output;
    EXPECT_NE(outcome.output.find("FERMATA_THREAD_POINTER=switch"), std::string::npos) << outcome.output;
    EXPECT_EQ(redirected("doubtful-late", "switch").output, "good\n");
}

}  // namespace
