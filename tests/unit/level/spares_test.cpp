// Images of a node's memory are written over those that went, and never over one that somebody still reads.
#include "level/spares.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/error.h"
#include "image/spare.h"
#include "level/memory.h"

namespace fermata::level {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kJob = 0x1122334455667788;
constexpr uint64_t kAddress = uint64_t{1} << 40;

struct SparesTest : testing::Test {
    void SetUp() override {
        char name[] = "/dev/shm/fermata-spares-XXXXXX";
        root = ::mkdtemp(name);
        ::setenv("FERMATA_MEMORY_DIR", root.c_str(), 1);
        fs::create_directory(root / "ckpt");
        memory.emplace(NodePlace{"a"}, kJob, root / "ckpt");
    }
    void TearDown() override {
        memory.reset();
        ::unsetenv("FERMATA_MEMORY_DIR");
        fs::remove_all(root);
    }
    // Its image of rank 0, of so many pages.
    std::string save(uint32_t generation, size_t pages, char letter) {
        const files::Folder folder = memory->make_room(Generation(generation), 1);
        const std::vector<char> data(pages * kPage, letter);
        image::Writer writer(image::Place(folder, image::image_name(Rank(0))),
                             {kJob, generation, Rank(0), 2});
        writer.run(kAddress, data.data(), data.size());
        writer.finish();
        return folder.path_of(image::image_name(Rank(0)));
    }
    void expect_image(uint32_t generation, size_t pages, char letter) const {
        const Memory::Found found = memory->look_for({Generation(generation)}, nullptr);
        EXPECT_EQ(found.intact.size(), 1u);
        EXPECT_TRUE(found.damaged.empty());
        image::Reader reader(image::Place(*memory->find(Generation(generation)), image::image_name(Rank(0))));
        std::vector<char> data(pages * kPage);
        reader.load([&](const image::Extent& one) { return data.data() + (one.address - kAddress); });
        EXPECT_EQ(data, std::vector<char>(pages * kPage, letter));
    }
    static ino_t file_of(const std::string& path) {
        struct stat status {};
        EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
        return status.st_ino;
    }
    std::string spare() const {
        return memory->folder().path_of(std::string(image::kSpareFolder) + "/" + image::image_name(Rank(0)));
    }

    fs::path root;
    std::optional<Memory> memory;
};

TEST_F(SparesTest, TheNextImageIsWrittenOverTheOneBeforeTheLast) {
    const ino_t first = file_of(save(1, 9, 'a'));
    const ino_t second = file_of(save(2, 9, 'b'));
    memory->keep({Generation(2)});
    EXPECT_FALSE(memory->find(Generation(1)));
    EXPECT_EQ(file_of(spare()), first);
    // A smaller one has no rest of what was there.
    const std::string third = save(3, 7, 'c');
    EXPECT_EQ(file_of(third), first);
    EXPECT_FALSE(fs::exists(spare()));
    expect_image(2, 9, 'b');
    expect_image(3, 7, 'c');
    memory->keep({Generation(3)});
    const std::string fourth = save(4, 12, 'd');
    EXPECT_EQ(file_of(fourth), second);
    expect_image(3, 7, 'c');
    expect_image(4, 12, 'd');
}

TEST_F(SparesTest, NotOverOneThatIsOpen) {
    const std::string path = save(1, 9, 'a');
    const ino_t first = file_of(path);
    save(2, 9, 'b');
    const Fd reader(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    memory->keep({Generation(2)});
    EXPECT_NE(file_of(save(3, 9, 'c')), first);
    EXPECT_FALSE(fs::exists(spare()));
    char there = 0;
    EXPECT_EQ(::pread(reader.get(), &there, 1, kPage), 1);
    EXPECT_EQ(there, 'a');
}

TEST_F(SparesTest, NotOverOneThatIsMuchLargerOrHasTwoNames) {
    save(1, 90, 'a');
    save(2, 2, 'b');
    memory->keep({Generation(2)});
    const ino_t large = file_of(spare());
    EXPECT_NE(file_of(save(3, 2, 'c')), large);
    EXPECT_EQ(file_of(spare()), large);
    // A small image does not take the place of a large spare.
    memory->keep({Generation(3)});
    EXPECT_EQ(file_of(spare()), large);
    fs::create_hard_link(spare(), root / "another");
    EXPECT_NE(file_of(save(4, 90, 'd')), large);
    expect_image(4, 90, 'd');
}

TEST_F(SparesTest, AnImageThatIsNotFinishedHasNoHeaderOfBefore) {
    save(1, 9, 'a');
    save(2, 9, 'b');
    memory->keep({Generation(2)});
    const files::Folder folder = memory->make_room(Generation(3), 1);
    const std::string name = image::image_name(Rank(0));
    ASSERT_TRUE(image::take_spare(folder, name, name, 9 * kPage));
    const Memory::Found found = memory->look_for({Generation(3)}, nullptr);
    EXPECT_TRUE(found.intact.empty());
    EXPECT_EQ(found.damaged.size(), 1u);
}

TEST_F(SparesTest, TheyGoWhereRoomIsScarceAndWithTheJob) {
    save(1, 9, 'a');
    save(2, 9, 'b');
    memory->keep({Generation(2)});
    EXPECT_GE(bytes_of_spares(memory->folder()), 9 * kPage);
    memory->relieve();
    EXPECT_TRUE(fs::exists(spare()));
    EXPECT_THROW(memory->make_room(Generation(3), uint64_t{1} << 60), Error);
    EXPECT_FALSE(fs::exists(spare()));
    save(3, 9, 'c');
    memory->keep({Generation(3)});
    EXPECT_TRUE(fs::exists(spare()));
    const std::string path = memory->folder().path();
    memory->leave();
    EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace fermata::level
