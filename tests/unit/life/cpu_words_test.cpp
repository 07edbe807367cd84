// Words that keep libraries to a level of CPUs.
#include "life/cpu_words.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace fermata::life {
namespace {

// A machine may have some of the variables set for everybody.
struct CpuWords : ::testing::Test {
    CpuWords() {
        for (const char* name : {"OPENBLAS_CORETYPE", "MKL_ENABLE_INSTRUCTIONS", "NPY_DISABLE_CPU_FEATURES"})
            ::unsetenv(name);
    }
};

std::map<std::string, std::string> words_of(const char* level, const char* tunables = "") {
    return cpu_environment(*cpu_level(level), tunables);
}

TEST(CpuLevel, KeepsWhatItAndTheLevelsBelowHave) {
    const char* all = "avx avx2 avx512f fsgsbase pku pni popcnt vaes";
    EXPECT_EQ(limited_to(*cpu_level("x86-64"), all), "fsgsbase");
    EXPECT_EQ(limited_to(*cpu_level("x86-64-v2"), all), "fsgsbase pni popcnt");
    EXPECT_EQ(limited_to(*cpu_level("x86-64-v3"), all), "avx avx2 fsgsbase pni popcnt");
    EXPECT_EQ(limited_to(*cpu_level("x86-64-v4"), all), "avx avx2 avx512f fsgsbase pni popcnt");
    EXPECT_EQ(limited_to(*cpu_level("x86-64-v4"), ""), "");
    EXPECT_EQ(cpu_level("x86-64-v5"), nullptr);
    EXPECT_EQ(cpu_level(""), nullptr);
}

TEST(CpuLevel, TheGreatestIsThatOfWhichNothingIsMissing) {
    const std::string v2 = "cx16 fsgsbase lahf_lm pni popcnt sse4_1 sse4_2 ssse3 vmx",
                      v3 = v2 + " abm avx avx2 bmi1 bmi2 f16c fma movbe xsave";
    EXPECT_EQ(greatest_cpu_level("fsgsbase pni").name, "x86-64");
    EXPECT_EQ(greatest_cpu_level("").name, "x86-64");
    EXPECT_EQ(greatest_cpu_level(v2).name, "x86-64-v2");
    EXPECT_EQ(greatest_cpu_level(v2 + " avx xsave").name, "x86-64-v2");
    EXPECT_EQ(greatest_cpu_level(v3).name, "x86-64-v3");
    EXPECT_EQ(greatest_cpu_level(v3 + " avx512bw avx512cd avx512dq avx512f avx512vl").name, "x86-64-v4");
    EXPECT_EQ(greatest_cpu_level("avx512bw avx512cd avx512dq avx512f avx512vl fsgsbase").name, "x86-64");
}

TEST_F(CpuWords, ALevelGoesWithoutWhatThoseAboveItHave) {
    const std::string v2 = words_of("x86-64-v2")["GLIBC_TUNABLES"],
                      v3 = words_of("x86-64-v3")["GLIBC_TUNABLES"];
    EXPECT_NE(v2.find("-AVX2,"), std::string::npos) << v2;
    EXPECT_EQ(v2.find("-SSE4_2"), std::string::npos) << v2;
    EXPECT_EQ(v3.find("-AVX2,"), std::string::npos) << v3;
    EXPECT_NE(v3.find("-AVX512F,"), std::string::npos) << v3;
    EXPECT_NE(words_of("x86-64")["GLIBC_TUNABLES"].find("-SSE4_2,"), std::string::npos);
    EXPECT_EQ(words_of("x86-64-v3")["OPENBLAS_CORETYPE"], "Haswell");
    EXPECT_EQ(words_of("x86-64-v3")["MKL_ENABLE_INSTRUCTIONS"], "AVX2");
    EXPECT_EQ(words_of("x86-64-v3")["NPY_DISABLE_CPU_FEATURES"].substr(0, 8), "AVX512F ");
}

TEST_F(CpuWords, WhatTheUserHasSetStays) {
    const std::string said =
        words_of("x86-64-v4", "glibc.malloc.check=1:glibc.cpu.hwcaps=-ERMS:x=y")["GLIBC_TUNABLES"];
    EXPECT_EQ(said.find("glibc.malloc.check=1:x=y:glibc.cpu.hwcaps=-ERMS,-AVX512ER,"), 0u) << said;
    ::setenv("OPENBLAS_CORETYPE", "Zen", 1);
    EXPECT_EQ(words_of("x86-64-v3").count("OPENBLAS_CORETYPE"), 0u);
    ::unsetenv("OPENBLAS_CORETYPE");
}

}  // namespace
}  // namespace fermata::life
