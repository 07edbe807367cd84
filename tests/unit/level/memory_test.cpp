// One node's memory as a directory, and copies of it to files.
#include "level/memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "level/copier.h"
#include "level/place.h"
#include "store/remove.h"
#include "store/store.h"

namespace fermata::level {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kJob = 0x1122334455667788;

class MemoryTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/fermata-level-XXXXXX";
        root_ = ::mkdtemp(name);
        ::setenv("FERMATA_MEMORY_DIR", root_.c_str(), 1);
        ::setenv("FERMATA_LOCAL_DIR", root_.c_str(), 1);
        fs::create_directory(root_ / "ckpt");
    }
    void TearDown() override {
        ::unsetenv("FERMATA_MEMORY_DIR");
        ::unsetenv("FERMATA_LOCAL_DIR");
        fs::remove_all(root_);
    }
    std::string home() const { return root_ / "ckpt"; }

    image::Summary put_image(const files::Folder& folder, uint32_t generation, uint32_t rank,
                             size_t pages = 3) {
        std::vector<char> data(pages * kPage, static_cast<char>('a' + rank));
        image::Writer writer(image::Place(folder, image::image_name(Rank(rank))),
                             {kJob, generation, Rank(rank), std::max(2u, rank + 1)});
        writer.run(uint64_t{1} << 40, data.data(), data.size());
        return writer.finish();
    }
    fs::path root_;
};

TEST_F(MemoryTest, NobodyElseMayLook) {
    Memory memory({"a"}, kJob, home());
    struct stat status {};
    for (const std::string& path : {user_directory(Medium::memory), job_directory({"a"}, kJob)}) {
        ASSERT_EQ(::stat(path.c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 0777, 0700u) << path;
    }
    ::chmod(user_directory(Medium::memory).c_str(), 0755);
    EXPECT_THROW(Memory({"b"}, kJob, home()), Error);
}

TEST_F(MemoryTest, RoomIsAskedForFirst) {
    Memory memory({"a"}, kJob, home());
    EXPECT_THROW(memory.make_room(Generation(1), uint64_t{1} << 60), Error);
    EXPECT_FALSE(memory.find(Generation(1)));
    memory.make_room(Generation(1), 1);
    EXPECT_TRUE(memory.find(Generation(1)));
    EXPECT_EQ(find_here(kJob, Generation(1)).size(), 1u);
    EXPECT_TRUE(find_here(kJob + 1, Generation(1)).empty());
}

TEST_F(MemoryTest, WhatIsNotKeptGoes) {
    Memory memory({"a"}, kJob, home());
    for (uint32_t number : {1u, 2u, 3u}) put_image(memory.make_room(Generation(number), 1), number, 0);
    memory.keep({Generation(2)});
    EXPECT_FALSE(memory.find(Generation(1)));
    EXPECT_TRUE(memory.find(Generation(2)));
    EXPECT_FALSE(memory.find(Generation(3)));
}

TEST_F(MemoryTest, OnlyIntactImagesAreCopies) {
    Memory memory({"a"}, kJob, home());
    files::Folder folder = memory.make_room(Generation(1), 1);
    image::Summary good = put_image(folder, 1, 0);
    put_image(folder, 1, 1);
    put_image(folder, 2, 7);  // of another generation
    std::fstream file(folder.path_of(image::image_name(Rank(1))), std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(kPage) + 5);
    file.put('X');
    file.close();
    Memory::Found found = memory.look_for({Generation(1), Generation(9)}, nullptr);
    ASSERT_EQ(found.intact.size(), 1u);
    EXPECT_EQ(found.intact[0].rank, Rank(0));
    EXPECT_EQ(found.intact[0].summary.checksum, good.checksum);
    ASSERT_EQ(found.damaged.size(), 2u);
    for (uint32_t i : {0u, 1u}) {
        const Memory::Flaw& flaw = found.damaged[i];
        const std::string name = image::image_name(flaw.rank);
        EXPECT_TRUE(flaw.rank == Rank(1) || flaw.rank == Rank(7)) << name;
        EXPECT_NE(flaw.why.find(name), std::string::npos) << flaw.why;
    }
}

TEST_F(MemoryTest, LeftoversGoUnlessARestartNeedsThem) {
    { put_image(Memory({"a"}, kJob, home()).make_room(Generation(1), 1), 1, 0); }
    {
        Memory running({"a"}, kJob + 1, home());
        running.make_room(Generation(4), 1);
        sweep(5, "a");
        EXPECT_TRUE(running.find(Generation(4)));  // its lock is held
    }
    EXPECT_TRUE(find_here(kJob, Generation(1)).empty());  // no manifest says that it exists
    EXPECT_FALSE(fs::exists(fs::path(job_directory({"a"}, kJob)).parent_path()));

    store::Store store = store::Store::for_writing(home());
    store.lock("job", kJob);
    store::GenerationInfo pending = store.begin();
    store::Manifest manifest;
    manifest.job = kJob;
    manifest.generation = pending.number;
    manifest.created = "now";
    manifest.level = store::LevelName::memory;
    manifest.mpi = "mpich";
    manifest.command = {"p"};
    {
        Memory memory({"a"}, kJob, home());
        image::Summary summary =
            put_image(memory.make_room(Generation(pending.number), 1), pending.number, 0);
        manifest.images = {{Rank(0), image::image_name(Rank(0)), summary.bytes, summary.checksum, 0}};
        manifest.nodes = {"a"};
        store.commit_on_nodes(pending, manifest);
    }
    sweep(5, "a");
    EXPECT_EQ(find_here(kJob, Generation(pending.number)).size(), 1u);
    store.note_end({kJob, "job", {"p"}, "now"});
    sweep(5, "a");
    EXPECT_TRUE(find_here(kJob, Generation(pending.number)).empty());
}

TEST_F(MemoryTest, LocalDirectoriesLieBesideAndStayForAWeek) {
    store::Store store = store::Store::for_writing(home());
    store.lock("job", kJob);
    store::GenerationInfo pending = store.begin();
    const Generation generation(pending.number);
    store::Manifest manifest;
    manifest.job = kJob;
    manifest.generation = pending.number;
    manifest.created = "now";
    manifest.level = store::LevelName::local;
    manifest.mpi = "mpich";
    manifest.command = {"p"};
    const NodePlace place{"a", Medium::local};
    {
        Memory local(place, kJob, home());
        EXPECT_THROW(local.make_room(Generation(9), uint64_t{1} << 60), Error);
        image::Summary summary = put_image(local.make_room(generation, 1), pending.number, 0);
        manifest.images = {{Rank(0), image::image_name(Rank(0)), summary.bytes, summary.checksum, 0}};
        manifest.nodes = {"a"};
        store.commit_on_nodes(pending, manifest);
        EXPECT_EQ(store.choose({}, false).manifest->level, store::LevelName::local);
        EXPECT_FALSE(is_here({"a", Medium::memory}, kJob));
        // A byte that is not compared is not missed; who compares, finds it.
        std::fstream file(local.find(generation)->path_of(image::image_name(Rank(0))),
                          std::ios::in | std::ios::out);
        file.seekp(static_cast<std::streamoff>(kPage) + 5);
        file.put('X');
        file.close();
        const auto never = [] { return false; };
        EXPECT_EQ(
            local.look_for({generation}, nullptr, never, [](Generation) { return false; }).intact.size(), 1u);
        EXPECT_TRUE(local.look_for({generation}, nullptr).intact.empty());
    }
    auto found = find_here(kJob, generation);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].place, place);
    auto age = [&](int days) {
        const timespec then{::time(nullptr) - days * 86400, 0};
        const timespec times[2] = {then, then};
        ::utimensat(AT_FDCWD, found[0].folder.path().c_str(), times, 0);
    };
    age(6);
    sweep(5, "a");
    EXPECT_EQ(find_here(kJob, generation).size(), 1u);
    age(8);
    sweep(5, "b");
    EXPECT_EQ(find_here(kJob, generation).size(), 1u);  // another node's
    sweep(5, "a");
    EXPECT_TRUE(find_here(kJob, generation).empty());
    EXPECT_FALSE(is_here(place, kJob));
}

TEST_F(MemoryTest, ACopyIsWholeOrNotThere) {
    store::Store store = store::Store::for_writing(home());
    store.lock("job", kJob);
    store::GenerationInfo pending = store.begin();
    const Generation generation(pending.number);
    Memory memory({"a"}, kJob, home());
    files::Folder folder = memory.make_room(generation, 1);
    store::Manifest manifest;
    manifest.job = kJob;
    manifest.generation = pending.number;
    manifest.created = "now";
    manifest.level = store::LevelName::memory;
    manifest.mpi = "mpich";
    manifest.command = {"p"};
    for (uint32_t rank : {0u, 1u}) {
        image::Summary summary = put_image(folder, pending.number, rank, 3000);
        manifest.images.push_back(
            {Rank(rank), image::image_name(Rank(rank)), summary.bytes, summary.checksum, 0});
        manifest.nodes.push_back("a");
    }
    store.commit_on_nodes(pending, manifest);
    EXPECT_THROW(store.commit_copied(pending.number), Error);  // no image has come
    EXPECT_TRUE(store.choose({}, false).manifest->on_nodes());

    Copier copier;
    copier.start({1, kJob, {{generation, folder}}, home(), {0, 1}}, 1);  // a byte a second
    ::usleep(50'000);
    EXPECT_FALSE(copier.take());
    copier.limit(0);
    pollfd wait{copier.descriptor(), POLLIN, 0};
    ASSERT_EQ(::poll(&wait, 1, 20'000), 1);
    auto result = copier.take();
    ASSERT_TRUE(result);
    EXPECT_EQ(result->error, "");
    EXPECT_EQ(result->bytes, manifest.bytes());
    store.commit_copied(pending.number);
    store::GenerationInfo copied = store.choose({}, false);
    EXPECT_EQ(copied.manifest->level, store::LevelName::files);
    for (const store::ImageEntry& entry : copied.manifest->images) {
        image::Reader reader(copied.place(entry));
        EXPECT_TRUE(copied.is_of(entry, reader));
        reader.verify();
    }
    store.keep_on_nodes({});  // it is none any more
    EXPECT_EQ(store.list().size(), 1u);
}

TEST_F(MemoryTest, ACopyThatFailsLeavesNothing) {
    store::Store store = store::Store::for_writing(home());
    store.lock("job", kJob);
    store::GenerationInfo pending = store.begin();
    const Generation generation(pending.number);
    Memory memory({"a"}, kJob, home());
    files::Folder folder = memory.make_room(generation, 1);
    store::Manifest manifest;
    manifest.job = kJob;
    manifest.generation = pending.number;
    manifest.created = "now";
    manifest.level = store::LevelName::memory;
    manifest.mpi = "mpich";
    manifest.command = {"p"};
    image::Summary summary = put_image(folder, pending.number, 0);
    manifest.images = {{Rank(0), image::image_name(Rank(0)), summary.bytes, summary.checksum, 0}};
    manifest.nodes = {"a"};
    store.commit_on_nodes(pending, manifest);
    std::ofstream(pending.directory + "/" + image::image_name(Rank(0))) << "in the way";
    Copier copier;
    copier.start({1, kJob, {{generation, folder}}, home(), {0, 1}}, 0);
    pollfd wait{copier.descriptor(), POLLIN, 0};
    ASSERT_EQ(::poll(&wait, 1, 20'000), 1);
    EXPECT_NE(copier.take()->error.find("in the way"), std::string::npos);
    store.forget_copied(pending.number);
    EXPECT_FALSE(fs::exists(pending.directory + "/" + image::image_name(Rank(0))));
    EXPECT_TRUE(store.choose({}, false).manifest->on_nodes());
    store.keep_on_nodes({});
    EXPECT_TRUE(store.list().empty());
}

}  // namespace
}  // namespace fermata::level
