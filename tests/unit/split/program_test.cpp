// inspect_program: the checks that `fermata run` makes before anything starts.
#include "split/loader/program.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "split/loader/dynamic_symbols.h"

using namespace fermata::split;

namespace {

class File {
  public:
    File(const char* name, const std::string& content, mode_t mode = 0755)
        : path_(testing::TempDir() + "fermata-program-" + std::to_string(getpid()) + name) {
        std::FILE* f = std::fopen(path_.c_str(), "w");
        std::fwrite(content.data(), 1, content.size(), f);
        std::fclose(f);
        chmod(path_.c_str(), mode);
    }
    ~File() { unlink(path_.c_str()); }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

std::string error_of(const std::string& name) {
    std::string error = inspect_program(name).error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
    return error;
}

#define EXPECT_SAYS(name, text) EXPECT_NE(error_of(name).find(text), std::string::npos) << error_of(name)

}  // namespace

TEST(Program, FindsPrograms) {
    ProgramCheck sh = inspect_program("sh");
    EXPECT_EQ(sh.error, "");
    EXPECT_TRUE(sh.binary.starts_with("/"));
    EXPECT_FALSE(sh.loader.empty());
    EXPECT_EQ(sh.abi, MpiAbi::none);
    EXPECT_TRUE(std::any_of(sh.libraries.begin(), sh.libraries.end(),
                            [](const std::string& l) { return l.find("libc.so.6") != std::string::npos; }));
    EXPECT_FALSE(inspect_program(PROGRAMS "/saver-fixed").position_independent);
}

TEST(Program, SaysWhyNot) {
    EXPECT_SAYS("no-such-program-anywhere", "not found in PATH");
    EXPECT_SAYS("/tmp", "is a directory");
    EXPECT_SAYS(PROGRAMS "/static", "statically linked");
    EXPECT_SAYS("", "no program");
    File plain("plain", "echo hello\n", 0644);
    EXPECT_SAYS(plain.path(), "chmod +x");
    File empty("empty", "");
    EXPECT_SAYS(empty.path(), "empty");
    File noise("noise", std::string("\0\1\2\3", 4));
    EXPECT_SAYS(noise.path(), "neither");
    File arm("arm", std::string("\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0\267\0", 20) + std::string(100, '\0'));
    EXPECT_SAYS(arm.path(), "aarch64");
}

TEST(Program, Scripts) {
    File script("script", "#!/bin/sh -e -u\nexit\n");
    ProgramCheck check = inspect_program(script.path());
    EXPECT_EQ(check.error, "");
    EXPECT_EQ(check.prefix, (std::vector<std::string>{"/bin/sh", "-e -u", script.path()}));
    File env("env", "#!/usr/bin/env sh\n");
    check = inspect_program(env.path());
    ASSERT_EQ(check.prefix.size(), 2u);
    EXPECT_TRUE(check.prefix[0].ends_with("/sh"));
    File options("options", "#!/usr/bin/env -S sh -e\n");
    EXPECT_EQ(inspect_program(options.path()).prefix.size(), 3u);
    File plain("plain", "echo hello\n");
    EXPECT_EQ(inspect_program(plain.path()).prefix, (std::vector<std::string>{"/bin/sh", plain.path()}));
    File nested("nested", "#!" + script.path() + "\n");
    EXPECT_EQ(inspect_program(nested.path()).prefix,
              (std::vector<std::string>{"/bin/sh", "-e -u", script.path(), nested.path()}));
    File missing("missing", "#!/no/such/interpreter\n");
    EXPECT_SAYS(missing.path(), "interpreter /no/such/interpreter");
    File dos("dos", "#!/bin/sh\r\n");
    EXPECT_SAYS(dos.path(), "DOS");
    File no_env("no_env", "#!/usr/bin/env no-such-interpreter\n");
    EXPECT_SAYS(no_env.path(), "no-such-interpreter");
}

TEST(Program, ResolvesLinks) {
    std::string link = testing::TempDir() + "fermata-program-" + std::to_string(getpid()) + "link";
    ASSERT_EQ(symlink(PROGRAMS "/which-mpi", link.c_str()), 0);
    ProgramCheck check = inspect_program(link);
    EXPECT_EQ(check.program, link);
    EXPECT_TRUE(check.binary.ends_with("/programs/which-mpi"));
    unlink(link.c_str());
}

TEST(Program, KnowsTheAbiThroughLibraries) {
    ProgramCheck direct = inspect_program(PROGRAMS "/which-mpi");
    EXPECT_EQ(direct.abi, MpiAbi::openmpi);
    EXPECT_EQ(direct.mpi_names, std::vector<std::string>{"libmpi.so.40"});
    EXPECT_TRUE(std::none_of(direct.libraries.begin(), direct.libraries.end(),
                             [](const std::string& l) { return l.find("libmpi") != std::string::npos; }));
}

TEST(Program, SymbolsOfDamagedFiles) {
    std::ifstream in("/proc/self/exe", std::ios::binary);
    std::string whole(std::istreambuf_iterator<char>(in), {});
    auto symbols = [](const std::string& bytes) {
        File file("-elf", bytes);
        ElfFile elf;
        return elf.read(file.path()).empty() ? dynamic_symbols(elf) : std::vector<DynamicSymbol>();
    };
    auto has_write = [](const std::vector<DynamicSymbol>& all) {
        return std::any_of(all.begin(), all.end(), [](const DynamicSymbol& s) {
            return s.name == "fwrite" && !s.defined && !s.weak;
        });
    };
    EXPECT_TRUE(has_write(symbols(whole)));
    for (size_t part = 0; part < 16; ++part)
        EXPECT_FALSE(has_write(symbols(whole.substr(0, whole.size() * part / 16))));  // no section headers
    std::mt19937 random(20261122);
    for (int round = 0; round < 300; ++round) {
        std::string damaged = whole;
        Elf64_Ehdr header;
        std::memcpy(&header, whole.data(), sizeof header);
        size_t tables = whole.size() - header.e_shoff;
        for (int flips = 0; flips < 8; ++flips) {
            size_t at = flips % 2 == 0 ? header.e_shoff + random() % tables : random() % sizeof header;
            damaged[at] = static_cast<char>(random());
        }
        for (const DynamicSymbol& one : symbols(damaged)) EXPECT_FALSE(one.name.empty());
    }
}
