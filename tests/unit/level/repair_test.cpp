// A byte that has flipped, a file that is cut or gone, in any copy of a generation: mended from another copy
// or from parity, or said to be damaged; and nothing is written to otherwise.
#include "level/repair.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "base/error.h"
#include "erasure/names.h"
#include "files/owners.h"
#include "level/copier.h"
#include "level/memory.h"
#include "level/place.h"
#include "store/remove.h"
#include "store/store.h"

namespace fermata::level {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kJob = 0x1122334455667788;
constexpr uint32_t kRanks = 3;

alignas(kPage) char g_text[2 * kPage];

class RepairTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/fermata-repair-XXXXXX";
        root_ = ::mkdtemp(name);
        ::setenv("FERMATA_MEMORY_DIR", root_.c_str(), 1);
        for (char& c : g_text) c = static_cast<char>(random_());
        store_.emplace(store::Store::for_writing(root_ / "ckpt"));
        store_->lock("job", kJob);
    }
    void TearDown() override {
        ::unsetenv("FERMATA_MEMORY_DIR");
        fs::remove_all(root_);
    }

    // `base`: what the image does not write again.
    image::Content put_image(const files::Folder& folder, uint32_t generation, uint32_t rank,
                             store::Manifest& manifest, const image::Content* base = nullptr) {
        std::vector<char> data(pages_ * kPage);
        for (char& c : data) c = static_cast<char>(random_());
        image::Writer writer(image::Place(folder, image::image_name(Rank(rank))),
                             {kJob, generation, Rank(rank), kRanks});
        const uint64_t at = uint64_t{1} << 40;
        if (base) writer.keep(*base, {Range::sized(at, pages_ * kPage)});
        writer.run(at + (base ? 100 * kPage : 0), data.data(), data.size());
        writer.share({Range::sized(reinterpret_cast<uint64_t>(g_text), sizeof g_text)});
        const image::Summary summary = writer.finish();
        manifest.images.push_back(
            {Rank(rank), image::image_name(Rank(rank)), summary.bytes, summary.checksum});
        return writer.content();
    }

    store::Manifest manifest_of(uint32_t number) {
        store::Manifest manifest;
        manifest.job = kJob;
        manifest.job_name = "job";
        manifest.generation = number;
        manifest.created = "2026-11-26 20:00:00";
        manifest.mpi = "openmpi";
        manifest.command = {"./solver"};
        return manifest;
    }

    // In files, or in the memory of a, b, c: a rank each.
    void commit(store::LevelName level) {
        store::GenerationInfo pending = store_->begin();
        store::Manifest manifest = manifest_of(pending.number);
        manifest.level = level;
        const Generation generation(pending.number);
        std::vector<image::Content> contents;
        for (uint32_t rank = 0; rank < kRanks; ++rank) {
            const std::string node(1, static_cast<char>('a' + rank));
            files::Folder folder = pending.folder;
            if (level == store::LevelName::memory) {
                folder = on(node, generation);
                manifest.nodes.push_back(node);
            }
            const image::Content* base = contents_.empty() ? nullptr : &contents_.at(rank);
            contents.push_back(put_image(folder, pending.number, rank, manifest, base));
        }
        if (!contents_.empty()) manifest.needs = {pending.number - 1};
        contents_ = std::move(contents);
        level == store::LevelName::memory ? store_->commit_on_nodes(pending, manifest)
                                          : store_->commit(pending, manifest);
    }
    files::Folder on(const std::string& node, Generation generation) {
        files::Folder folder = make_job_directory({node}, kJob);
        if (auto there = folder.find(generation.name())) return *there;
        files::Folder made = *folder.make(generation.name());
        store::write_marker(made, {kJob, generation.number()});
        return made;
    }
    fs::path in_files(uint32_t number) const { return root_ / "ckpt" / Generation(number).name(); }
    fs::path in_memory(const std::string& node, uint32_t number) const {
        return fs::path(job_directory({node}, kJob)) / Generation(number).name();
    }
    // All of a generation as a node would fetch it.
    void copy(const fs::path& from, const fs::path& to) {
        for (const auto& one : fs::directory_iterator(from)) {
            const std::string name = one.path().filename();
            if (name.ends_with(".img") && !fs::exists(to / name)) fs::copy_file(one.path(), to / name);
        }
    }

    store::GenerationInfo info(uint32_t number) {
        for (store::GenerationInfo& one : store_->list())
            if (one.number == number) return std::move(one);
        throw Error("no such generation");
    }
    std::vector<std::string> damage(uint32_t number) {
        const store::GenerationInfo one = info(number);
        Copies copies(one, nullptr, judge_);
        copies.look();
        std::vector<std::string> all = copies.damage();
        const ParityHere parity(copies.shelves(), kJob, Generation(number));
        for (const ParityHere::Damage& one : parity.damage()) all.push_back(one.why);
        return all;
    }
    Repair::Report repair(uint32_t number) {
        const store::GenerationInfo one = info(number);
        Copies copies(one, nullptr, judge_);
        copies.look();
        const ParityHere parity(copies.shelves(), copies.info().manifest->job,
                                Generation(copies.info().number));
        return Repair(copies, parity).run();
    }

    static std::string content(const fs::path& path) {
        std::ifstream in(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void harm(const fs::path& path) {
        const uint64_t bytes = fs::file_size(path);
        const auto what = random_() % 8;
        if (what == 0) {
            fs::remove(path);
        } else if (what == 1) {
            fs::resize_file(path, random_() % bytes);
        } else {
            std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
            const auto at = static_cast<std::streamoff>(random_() % bytes);
            file.seekg(at);
            const char byte = static_cast<char>(file.get() ^ (1 << random_() % 8));
            file.seekp(at);
            file.put(byte);
        }
    }
    std::vector<fs::path> files_in(const fs::path& directory) {
        std::vector<fs::path> all;
        for (const auto& one : fs::directory_iterator(directory))
            if (one.path().extension() == ".img") all.push_back(one.path());
        std::sort(all.begin(), all.end());
        return all;
    }
    // Harms each of these files many times: what is found is mended to what it was, whatever it is.
    void harm_and_mend(uint32_t number, const std::vector<fs::path>& all, const std::string& from,
                       int times = 12) {
        int found = 0;
        for (int i = 0; i < times; ++i)
            for (const fs::path& path : all) {
                const std::string before = content(path);
                harm(path);
                const auto said = damage(number);
                if (said.empty()) {  // a byte between the parts of an image is nobody's
                    ASSERT_EQ(content(path).size(), before.size());
                    std::ofstream(path, std::ios::binary) << before;
                    continue;
                }
                ++found;
                const Repair::Report report = repair(number);
                EXPECT_TRUE(report.left.empty()) << report.left.front();
                ASSERT_FALSE(report.mended.empty());
                EXPECT_NE(report.mended[0].find(" from " + from), std::string::npos) << report.mended[0];
                EXPECT_TRUE(content(path) == before) << path;
                EXPECT_TRUE(damage(number).empty());
            }
        EXPECT_GT(2 * found, times);
    }

    fs::path root_;
    size_t pages_ = 5;
    std::mt19937 random_{11};
    std::optional<store::Store> store_;
    std::vector<image::Content> contents_;
    Judge judge_ = [](const image::Reader&, const files::Folder&) { return std::vector<KeptFile>(); };
};

TEST_F(RepairTest, FilesFromMemory) {
    commit(store::LevelName::files);
    copy(in_files(1), (on("a", Generation(1)), in_memory("a", 1)));
    EXPECT_TRUE(damage(1).empty());
    harm_and_mend(1, files_in(in_files(1)), "the memory of a");
}

TEST_F(RepairTest, MemoryFromFiles) {
    commit(store::LevelName::files);
    copy(in_files(1), (on("b", Generation(1)), in_memory("b", 1)));
    // What is not there any more in memory is in files, and that is enough.
    std::vector<fs::path> all = files_in(in_memory("b", 1));
    for (int i = 0; i < 30; ++i)
        for (const fs::path& path : all) {
            const std::string before = content(path);
            harm(path);
            if (damage(1).empty()) {
                std::ofstream(path, std::ios::binary) << before;
                continue;
            }
            EXPECT_TRUE(repair(1).left.empty());
            EXPECT_TRUE(content(path) == before) << path;
        }
}

TEST_F(RepairTest, OneNodesMemoryFromItsBuddys) {
    commit(store::LevelName::memory);
    copy(in_memory("a", 1), in_memory("b", 1));
    EXPECT_TRUE(damage(1).empty());
    harm_and_mend(1, {in_memory("a", 1) / image::image_name(Rank(0))}, "the memory of b", 20);
}

TEST_F(RepairTest, TextAndWhatIncrementsReferTo) {
    commit(store::LevelName::files);
    commit(store::LevelName::files);
    for (uint32_t number : {1u, 2u})
        copy(in_files(number), (on("a", Generation(number)), in_memory("a", number)));
    for (int i = 0; i < 40; ++i) {
        const std::vector<fs::path> all = files_in(in_files(1));
        const fs::path path = all[random_() % all.size()];
        const std::string before = content(path);
        harm(path);
        if (damage(1).empty()) {
            std::ofstream(path, std::ios::binary) << before;
            continue;
        }
        EXPECT_FALSE(damage(2).empty() && path.filename().string().starts_with("rank-"))
            << "one refers to the other";
        EXPECT_TRUE(repair(1).left.empty());
        EXPECT_TRUE(repair(2).left.empty());
        EXPECT_TRUE(content(path) == before) << path;
        EXPECT_TRUE(damage(2).empty());
    }
}

TEST_F(RepairTest, WithoutAnotherCopyItIsRefusedAndNothingIsWritten) {
    commit(store::LevelName::files);
    const fs::path path = in_files(1) / image::image_name(Rank(1));
    fs::resize_file(path, kPage + 100);
    const std::string before = content(path);
    Repair::Report report = repair(1);
    ASSERT_EQ(report.left.size(), 1u);
    EXPECT_NE(report.left[0].find("no other copy of it is here"), std::string::npos) << report.left[0];
    EXPECT_TRUE(report.mended.empty());
    EXPECT_TRUE(content(path) == before) << path;
    // Another one that is damaged as well is none.
    copy(in_files(1), (on("a", Generation(1)), in_memory("a", 1)));
    report = repair(1);
    EXPECT_EQ(report.left.size(), 2u);
    EXPECT_TRUE(content(path) == before) << path;
    for (const auto& one : fs::directory_iterator(in_files(1)))
        EXPECT_FALSE(one.path().filename().string().starts_with(store::kOnItsWay));
}

TEST_F(RepairTest, TheImageOfAnotherGenerationIsNoCopy) {
    commit(store::LevelName::files);
    copy(in_files(1), (on("a", Generation(1)), in_memory("a", 1)));
    const std::string name = image::image_name(Rank(0));
    contents_.clear();
    store::Manifest other = manifest_of(1);
    fs::remove(in_memory("a", 1) / name);
    put_image(on("a", Generation(1)), 1, 0, other);  // whole, and not what the manifest names
    fs::remove(in_files(1) / name);
    const Repair::Report report = repair(1);
    EXPECT_EQ(report.left.size(), 2u);
    EXPECT_FALSE(fs::exists(in_files(1) / name));
}

// His manifest may name this user's job: what this user's nodes keep is then neither said to be damaged, nor
// written to.
TEST_F(RepairTest, AnotherUsersGenerationHasNoSayHere) {
    if (::geteuid() != 0) GTEST_SKIP() << "nobody else's directory can be made";
    constexpr uid_t kOther = 61000000;
    commit(store::LevelName::files);
    copy(in_files(1), (on("a", Generation(1)), in_memory("a", 1)));
    std::map<fs::path, std::string> before;
    for (const fs::path& path : files_in(in_memory("a", 1))) before[path] = content(path);
    fs::remove_all(in_files(1));
    contents_.clear();
    commit(store::LevelName::files);  // as he would make it: of the same number, whole
    for (const auto& one : fs::directory_iterator(in_files(1)))
        ASSERT_EQ(::chown(one.path().c_str(), kOther, kOther), 0);
    ASSERT_EQ(::chown(in_files(1).c_str(), kOther, kOther), 0);
    files::allow_owner(kOther);
    EXPECT_TRUE(damage(1).empty()) << damage(1).front();
    EXPECT_TRUE(repair(1).mended.empty());
    for (const auto& [path, text] : before) EXPECT_TRUE(content(path) == text) << path;
    files::allow_owner(static_cast<uid_t>(-1));
}

TEST_F(RepairTest, Markers) {
    commit(store::LevelName::memory);
    copy(in_memory("a", 1), in_memory("b", 1));
    const fs::path marker = in_memory("a", 1) / store::kMarker;
    const std::string before = content(marker);
    std::ofstream(marker) << "fermata generation 1\njob 1122334455667789!";
    EXPECT_FALSE(damage(1).empty());
    EXPECT_TRUE(repair(1).left.empty());
    EXPECT_TRUE(content(marker) == before);
    EXPECT_TRUE(damage(1).empty());
}

// Neither an image, nor text, nor what an increment refers to; what was copied is whole, or the copy fails.
TEST_F(RepairTest, WhatIsDamagedDoesNotComeToFiles) {
    commit(store::LevelName::memory);
    commit(store::LevelName::memory);
    const std::vector<uint32_t> both = {1, 2};
    const auto copy_now = [&] {
        Copier::Order order{1, kJob, {}, root_ / "ckpt", {0}, {}};
        for (uint32_t number : both) order.from.emplace_back(Generation(number), on("a", Generation(number)));
        Copier copier;
        copier.start(std::move(order), 0);
        pollfd wait{copier.descriptor(), POLLIN, 0};
        return ::poll(&wait, 1, 20'000) == 1 ? copier.take()->error : "it does not end";
    };
    std::vector<fs::path> all;
    for (uint32_t number : both)
        for (const fs::path& path : files_in(in_memory("a", number))) all.push_back(path);
    int found = 0;
    for (int i = -1; i < 80; ++i) {
        const fs::path harmed = all[random_() % all.size()];
        const std::string before = content(harmed);
        if (i >= 0) harm(harmed);
        const std::string error = copy_now();
        EXPECT_TRUE(i >= 0 || error.empty()) << error;
        found += !error.empty();
        // Of an image that is gone nothing is copied, and nothing committed.
        if (error.empty() && fs::exists(harmed))
            for (uint32_t number : both) {
                const std::string path = in_files(number) / image::image_name(Rank(0));
                EXPECT_NO_THROW(image::Reader(path).verify());
            }
        for (uint32_t number : both) {
            store_->forget_copied(number);
            EXPECT_TRUE(files_in(in_files(number)).empty());
        }
        fs::remove(harmed);
        std::ofstream(harmed, std::ios::binary) << before;
    }
    EXPECT_GT(found, 40);
}

class ParityTest : public RepairTest {
  protected:
    void encode() {
        commit(store::LevelName::memory);
        std::vector<erasure::Contents> all;
        std::vector<std::optional<files::Folder>> folders;
        for (const char* node : {"a", "b", "c"}) {
            folders.emplace_back(on(node, Generation(1)));
            all.push_back(erasure::contents_of(*folders.back(), kJob, Generation(1), node));
        }
        const erasure::Group group = erasure::Group::of(all, 1);
        for (uint32_t i = 0; i < kRanks; ++i) {
            erasure::Folders source(folders);
            erasure::write_parity(group, erasure::Member{i}, source, *folders[i]);
            const auto bytes = all[i].to_bytes();
            folders[i]->replace_unsynced(erasure::kContentsFile,
                                         {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        }
    }
};

TEST_F(ParityTest, ImagesAndTextComeFromParity) {
    encode();
    EXPECT_TRUE(damage(1).empty());
    harm_and_mend(1, files_in(in_memory("b", 1)), "parity");
}

TEST_F(ParityTest, ParityIsMadeAnew) {
    encode();
    for (const char* name : {erasure::kParityFile, erasure::kContentsFile})
        for (int i = 0; i < 20; ++i) {
            const fs::path path = in_memory("c", 1) / name;
            const std::string before = content(path);
            harm(path);
            if (damage(1).empty()) {  // gone, or between head and parity
                std::ofstream(path, std::ios::binary) << before;
                continue;
            }
            const Repair::Report report = repair(1);
            EXPECT_TRUE(report.left.empty()) << report.left.front();
            EXPECT_TRUE(content(path) == before) << path;
        }
}

TEST_F(ParityTest, MoreThanItBearsIsRefused) {
    pages_ = 1000;  // in each stripe there is something of each node
    encode();
    for (const char* node : {"a", "b"}) fs::resize_file(files_in(in_memory(node, 1))[0], kPage);
    const Repair::Report report = repair(1);
    EXPECT_EQ(report.left.size(), 2u);
    EXPECT_NE(report.left[0].find("cannot be rebuilt"), std::string::npos) << report.left[0];
}

}  // namespace
}  // namespace fermata::level
