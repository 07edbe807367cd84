#include "base/control_groups.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

using fermata::room_in_groups;
namespace fs = std::filesystem;

namespace {

struct ControlGroups : testing::Test {
    fs::path mounted = [] {
        std::string name = testing::TempDir() + "groups-XXXXXX";
        return fs::path(::mkdtemp(name.data()));
    }();
    ~ControlGroups() override { fs::remove_all(mounted); }
    void write(const fs::path& name, const std::string& text) const {
        fs::create_directories((mounted / name).parent_path());
        std::ofstream(mounted / name) << text;
    }
    void second(const fs::path& group, const std::string& most, uint64_t used,
                const std::string& parts = "") const {
        write(group / "memory.max", most + "\n");
        write(group / "memory.current", std::to_string(used) + "\n");
        write(group / "memory.stat", parts);
    }
};

TEST_F(ControlGroups, NoneHasALimit) {
    second("job", "max", 1000);
    EXPECT_EQ(room_in_groups("0::/job\n", mounted, 0), UINT64_MAX);
    EXPECT_EQ(room_in_groups("0::/elsewhere\n", mounted, 0), UINT64_MAX);
    EXPECT_EQ(room_in_groups("", mounted, 0), UINT64_MAX);
}

TEST_F(ControlGroups, TheLeastOfAllAbove) {
    second("job/step", "max", 10);
    second("job", "1000", 300);
    second("", "5000", 4800);
    EXPECT_EQ(room_in_groups("0::/job/step\n", mounted, 0), 200u);
    second("", "max", 4800);
    EXPECT_EQ(room_in_groups("0::/job/step\n", mounted, 0), 700u);
    second("job", "200", 300);
    EXPECT_EQ(room_in_groups("0::/job/step\n", mounted, 0), 0u);
    second("", "100", 40);
    EXPECT_EQ(room_in_groups("0::/\n", mounted, 0), 60u);
}

TEST_F(ControlGroups, APartIsLeftForOthers) {
    second("job/step", "1000", 10);
    second("job", "2000", 1200);
    EXPECT_EQ(room_in_groups("0::/job/step\n", mounted, 20), 700u);
    second("job", "max", 1200);
    EXPECT_EQ(room_in_groups("0::/job/step\n", mounted, 20), 940u);
    second("job/step", "1000", 960);
    EXPECT_EQ(room_in_groups("0::/job/step\n", mounted, 20), 0u);
}

TEST_F(ControlGroups, CachedFilesAreRoom) {
    const char* parts =
        "anon 100\nshmem 150\nfile_dirty 30\nfile_writeback 20\ninactive_file 500\nactive_file 200\n";
    second("job", "1000", 1000, parts);
    EXPECT_EQ(room_in_groups("0::/job\n", mounted, 0), 650u);
    second("job", "1000", 1000, "inactive_file 10\nfile_dirty 30\n");
    EXPECT_EQ(room_in_groups("0::/job\n", mounted, 0), 0u);
}

TEST_F(ControlGroups, Version1) {
    write("memory/job/memory.limit_in_bytes", "1000\n");
    write("memory/job/memory.usage_in_bytes", "900\n");
    write("memory/job/memory.stat",
          "inactive_file 7\ntotal_inactive_file 100\ntotal_active_file 50\ntotal_dirty 10\n");
    const char* groups = "9:name=systemd:/\n5:cpu,memory:/job\n4:memory_not:/job\n0::/\n";
    EXPECT_EQ(room_in_groups(groups, mounted, 0), 240u);
    write("memory/job/memory.limit_in_bytes", "9223372036854771712\n");
    EXPECT_GT(room_in_groups(groups, mounted, 0), uint64_t{1} << 62);
}

}  // namespace
