// Real programs in a split process: who lies where, clocks, limits, descriptors, and a life after a save.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "run_mini.h"
#include "split/address/window.h"

using fermata::Range;
using namespace fermata::split;

namespace {

// `program` must appear in the window (or below, when it is not position independent), and nothing of the
// lower half may.
void expect_partition(const std::string& maps, const std::string& program) {
    std::istringstream in(maps);
    std::string line;
    int upper_libc = 0, lower_libc = 0, upper_program = 0, lines = 0;
    bool lower_in_place = true, program_in_place = true;
    while (std::getline(in, line)) {
        unsigned long begin, end;
        char prot[5];
        if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, prot) != 3) continue;
        ++lines;
        Range range{begin, end};
        bool upper = upper_range(range);
        bool libc = line.find("/libc.so.6") != std::string::npos;
        upper_libc += upper && libc;
        lower_libc += !upper && libc;
        upper_program += upper && line.find(program) != std::string::npos;
        EXPECT_FALSE(kWindow.overlaps(range) && !kWindow.contains(range)) << line;
        if (line.find("mini-lower") != std::string::npos || line.find("libmimalloc") != std::string::npos ||
            line.find("[stack]") != std::string::npos || line.find("[vdso]") != std::string::npos)
            lower_in_place &= !upper;
        if (line.find(program) != std::string::npos) program_in_place &= upper;
    }
    EXPECT_TRUE(lower_in_place && program_in_place) << maps;
    EXPECT_GT(lines, 10) << maps;
    EXPECT_GT(upper_libc, 0) << maps;
    EXPECT_GT(lower_libc, 0) << maps;
    EXPECT_GT(upper_program, 0) << maps;
}

std::string scratch(const char* name) {
    return testing::TempDir() + "fermata-split-" + std::to_string(getpid()) + name;
}

}  // namespace

TEST(Partition, SystemProgram) {
    Outcome o = run_in_split("/bin/cat /proc/self/maps");
    EXPECT_EQ(o.code, 0);
    expect_partition(o.output, "/cat");
}

TEST(Partition, ProgramWithThreads) {
    Outcome o = run_in_split(PROGRAMS "/threads");
    EXPECT_EQ(o.code, 0);
    expect_partition(o.output, "/programs/threads");
}

TEST(Partition, LowerHalfBusyMeanwhile) {
    setenv("MINI_LOWER_BUSY", "1", 1);
    for (int i = 0; i < 3; ++i) {
        Outcome o = run_in_split(PROGRAMS "/threads");
        EXPECT_EQ(o.code, 0);
        expect_partition(o.output, "/programs/threads");
    }
    unsetenv("MINI_LOWER_BUSY");
}

TEST(Partition, Python) {
    if (access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP();
    Outcome o = run_in_split(
        "/usr/bin/python3 -c 'import threading,sys\n"
        "t=[threading.Thread(target=lambda: bytearray(10**7)) for i in range(4)]\n"
        "[x.start() for x in t]; [x.join() for x in t]\n"
        "sys.stdout.write(open(\"/proc/self/maps\").read())'");
    EXPECT_EQ(o.code, 0);
    expect_partition(o.output, "python3");
}

TEST(Partition, LimitOnVirtualMemoryIsNamed) {
    Outcome o = run("sh -c 'ulimit -v 8000000; exec " MINI_LOWER " run /bin/true'");
    EXPECT_EQ(o.code, 99) << o.output;
    EXPECT_NE(o.output.find("ulimit -v unlimited"), std::string::npos) << o.output;
}

TEST(Partition, UnlimitedStackAndLegacyLayout) {
    // Either may make the kernel search bottom-up; the program sees the limit that it was started with.
    Outcome o = run("sh -c 'ulimit -s unlimited && exec " MINI_LOWER
                    " run /bin/sh -c \"ulimit -s; cat /proc/self/maps >/dev/null\"'");
    if (o.output.find("cannot modify") == std::string::npos) {
        EXPECT_EQ(o.code, 0);
        EXPECT_EQ(o.output, "unlimited\n");
    }
    if (run("setarch -L true").code != 0) return;  // a sandbox that forbids personality()
    o = run("setarch -L " MINI_LOWER " run /bin/cat /proc/self/maps");
    EXPECT_EQ(o.code, 0);
    expect_partition(o.output, "/cat");
}

TEST(Loader, ProgramSeesItselfAsUsual) {
    EXPECT_EQ(run_in_split("/bin/sh -c 'echo $0-$1-$#' a b").output, "a-b-1\n");
    EXPECT_EQ(run_in_split("sh -c 'echo found'").output, "found\n");
    setenv("FERMATA_SECRET", "1", 1);
    setenv("SOMETHING_ELSE", "kept", 1);
    EXPECT_EQ(run_in_split("sh -c 'echo [$FERMATA_SECRET$SOMETHING_ELSE]'").output, "[kept]\n");
    unsetenv("FERMATA_SECRET");
    EXPECT_EQ(run_in_split("sh -c 'exit 7'").code, 7);
    EXPECT_EQ(run_in_split("sh -c 'kill -TERM $$'").code & 0x7f, SIGTERM);
}

TEST(Loader, Errors) {
    auto error = [](const std::string& program) {
        Outcome o = run_in_split(program);
        EXPECT_EQ(o.code, 99) << o.output;
        EXPECT_EQ(std::count(o.output.begin(), o.output.end(), '\n'), 1) << o.output;
        return o.output;
    };
    EXPECT_NE(error("no-such-program-anywhere").find("was not found in PATH"), std::string::npos);
    EXPECT_NE(error("/no/such/program").find("does not exist"), std::string::npos);
    EXPECT_NE(error(PROGRAMS "/static").find("statically linked"), std::string::npos);
}

TEST(Loader, FrontBeatsRpath) {
    EXPECT_EQ(run(PROGRAMS "/which-mpi").output, "real\n");
    setenv("MINI_LOWER_FRONTS", PROGRAMS "/front", 1);
    EXPECT_EQ(run_in_split(PROGRAMS "/which-mpi").output, "front\n");
    unsetenv("MINI_LOWER_FRONTS");
}

TEST(Loader, ScriptsRunTheirInterpreter) {
    std::string path = scratch("script");
    std::FILE* f = std::fopen(path.c_str(), "w");
    std::fputs("#!/bin/sh -e\necho script $1; grep -c mini-lower /proc/$$/maps\n", f);
    std::fclose(f);
    chmod(path.c_str(), 0755);
    Outcome o = run_in_split(path + " argument");
    unlink(path.c_str());
    EXPECT_EQ(o.output.substr(0, 16), "script argument\n");
    EXPECT_NE(o.output, "script argument\n0\n");  // the shell itself is in the split process
}

TEST(Vdso, ReadsClocksAsFastAsNative) {
    Outcome native = run(PROGRAMS "/clock");
    Outcome split = run_in_split(PROGRAMS "/clock");
    ASSERT_EQ(native.code, 0) << native.output;
    ASSERT_EQ(split.code, 0) << split.output;
    // A system call would cost several times that; the margin is for busy machines.
    EXPECT_LT(std::atof(split.output.c_str()), 2 * std::atof(native.output.c_str()) + 30);
}

TEST(Descriptors, LowNumbersAreTheProgramsOwn) {
    const std::string list = "/bin/sh -c 'ulimit -n; for f in /proc/$$/fd/*; do echo ${f##*/}; done'";
    std::istringstream native(run(list).output), split(run_in_split(list).output);
    long native_limit, limit, fd, lower = 0;
    native >> native_limit;
    split >> limit;
    EXPECT_LE(limit, std::min(native_limit, 64512l));  // less when the hard limit leaves no room above
    EXPECT_GE(limit, std::min(native_limit, 192l));
    std::set<long> expected, seen;
    while (native >> fd) expected.insert(fd);
    while (split >> fd)
        if (fd < limit)
            seen.insert(fd);
        else
            ++lower;
    EXPECT_EQ(seen, expected);
    EXPECT_GE(lower, 1);
}

// Which program, and whether the flags of its memory are sampled before.
struct Case {
    const char* program;
    bool sample;
};
class SaveAndLoad : public testing::TestWithParam<Case> {};

TEST_P(SaveAndLoad, ContinuesInAFreshProcess) {
    auto [program, sample] = GetParam();
    std::string image = scratch("image"), file = scratch("file");
    if (sample) setenv("MINI_LOWER_SAMPLE", "1", 1);
    Outcome saved = run_in_split(std::string(PROGRAMS "/") + program + " " + image + " " + file);
    unsetenv("MINI_LOWER_SAMPLE");
    EXPECT_EQ(saved.code, 0);
    EXPECT_EQ(saved.output, "saved\n");
    for (const char* busy : {"", "MINI_LOWER_BUSY=1 "}) {
        Outcome loaded = run(std::string("env ") + busy + MINI_LOWER " load " + image);
        EXPECT_EQ(loaded.code, 0);
        EXPECT_EQ(loaded.output, "before and after\n");
    }
    unlink(file.c_str());
    Outcome missing = run(MINI_LOWER " load " + image);
    EXPECT_EQ(missing.code, 99);
    EXPECT_NE(missing.output.find(file), std::string::npos) << missing.output;
    unlink(image.c_str());
}
INSTANTIATE_TEST_SUITE_P(Programs, SaveAndLoad,
                         testing::Values(Case{"saver", false}, Case{"saver", true},
                                         Case{"saver-fixed", false}),
                         [](const auto& info) { return "Case" + std::to_string(info.index); });

TEST(Hop, ASecondLowerHalfServesTheSameProgram) {
    const Outcome hopped = run_in_split(PROGRAMS "/hopper 12");
    EXPECT_EQ(hopped.code, 7) << hopped.output;
    EXPECT_NE(hopped.output.find("right\n"), std::string::npos) << hopped.output;
}
