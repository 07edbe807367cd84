// Files of several images: which image lies in which, what the manifest says of it, and what a store refuses.
#include "store/parts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "image/shared.h"
#include "store/store.h"

namespace fermata::store {
namespace {
namespace fs = std::filesystem;

class PartsTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/fermata-parts-XXXXXX";
        directory_ = mkdtemp(name);
    }
    void TearDown() override { fs::remove_all(directory_); }

    // Five ranks on two nodes, dealt out in turn. The store never opens an image.
    uint32_t commit(Store& store, const image::Layout& layout, std::vector<uint32_t> needs = {}) {
        GenerationInfo pending = store.begin();
        Parts parts(layout, {7, 3, 7, 3, 7});
        parts.create(pending.folder);
        parts.lay_out({4096, 5 << 20, 4096, 4096, 100});
        parts.finish(pending.folder, 0x1234, pending.number);
        Manifest m;
        m.job = 0x1234;
        m.generation = pending.number;
        m.command = {"p"};
        m.needs = std::move(needs);
        for (uint32_t rank = 0; rank < 5; ++rank)
            m.images.push_back({Rank(rank), image::image_name(Rank(rank)), 50 + rank, {}, 0});
        if (!layout.together())
            for (const ImageEntry& image : m.images)
                std::ofstream(pending.directory + "/" + image.file) << std::string(image.bytes, 'x');
        parts.note_in(m);
        store.commit(pending, m);
        return pending.number;
    }
    Store open() {
        Store store = Store::for_writing(directory_);
        store.lock("test", 0x1234);
        return store;
    }
    static std::string refusal(const GenerationInfo& info) {
        try {
            info.check_layout();
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }
    static std::vector<std::string> files(const Manifest& m) {
        std::vector<std::string> names;
        for (const ImageEntry& image : m.images) names.push_back(image.file);
        return names;
    }
    std::string directory_;
};

const std::string kZero = "ranks-000000.img", kOne = "ranks-000001.img", kTwo = "ranks-000002.img",
                  kFour = "ranks-000004.img";

TEST_F(PartsTest, EveryLayoutIsReadAsItWasWritten) {
    Store store = open();
    const std::pair<const char*, std::vector<std::string>> layouts[] = {
        {"files",
         {"rank-000000.img", "rank-000001.img", "rank-000002.img", "rank-000003.img", "rank-000004.img"}},
        {"shared", {"ranks.img", "ranks.img", "ranks.img", "ranks.img", "ranks.img"}},
        {"node", {kZero, kOne, kZero, kOne, kZero}},
        {"group:2", {kZero, kZero, kTwo, kTwo, kFour}},
        {"group:5", {kZero, kZero, kZero, kZero, kZero}},
        {"group:1", {kZero, kOne, kTwo, "ranks-000003.img", kFour}}};
    for (auto& [word, names] : layouts) {
        const uint32_t number = commit(store, *image::Layout::of(word));
        const GenerationInfo info = store.choose(number, false);
        EXPECT_EQ(info.manifest->layout.word(), word);
        EXPECT_EQ(files(*info.manifest), names) << word;
        EXPECT_EQ(refusal(info), "");
        for (const FileEntry& file : info.manifest->all_files())
            EXPECT_EQ(fs::file_size(info.directory + "/" + file.name), file.bytes) << word;
        const std::string text = to_text(*info.manifest);
        EXPECT_EQ(to_text(parse_manifest(text, "m")), text);
    }
    store.retain(1);
    EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()),
              2);  // and the lock
}

TEST_F(PartsTest, AFileThatIsNotTheOneMeantIsRefusedWithItsRanks) {
    Store store = open();
    commit(store, image::Layout::node());
    commit(store, image::Layout::group(2));
    const GenerationInfo info = store.choose(2, false);
    const std::string path = info.directory + "/" + kTwo, aside = directory_ + "/aside";
    auto refused = [&](const std::string& words) {
        const std::string why = refusal(info);
        EXPECT_NE(why.find(kTwo), std::string::npos) << why;
        EXPECT_NE(why.find("(images of ranks 2,3)"), std::string::npos) << why;
        EXPECT_NE(why.find(words), std::string::npos) << why;
    };
    fs::copy_file(path, aside);
    // Of another generation, and of other ranks.
    fs::copy_file(directory_ + "/gen-000001/" + kOne, path, fs::copy_options::overwrite_existing);
    refused("is not the file that the manifest names");
    fs::copy_file(info.directory + "/" + kZero, path, fs::copy_options::overwrite_existing);
    refused("is not the file that the manifest names");
    fs::copy_file(aside, path, fs::copy_options::overwrite_existing);
    fs::resize_file(path, fs::file_size(path) - 1);
    refused("truncated or grown");
    try {
        store.check(info);
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("(images of ranks 2,3)"), std::string::npos) << error.what();
        EXPECT_EQ(error.code(), ExitCode::damaged);
    }
    fs::remove(path);
    refused("");
    EXPECT_THROW(store.choose(2, false), Error);
    EXPECT_EQ(store.choose({}, true).number, 1u);
}

TEST_F(PartsTest, WhatAnIncrementNeedsIsThereInWhateverLayout) {
    Store store = open();
    commit(store, image::Layout::node());
    commit(store, image::Layout::group(2), {1});
    EXPECT_EQ(store.choose(2, false).number, 2u);
    fs::remove(directory_ + "/gen-000001/" + kOne);
    try {
        store.choose(2, false);
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("gen-000001 has no image of rank 1"), std::string::npos)
            << error.what();
    }
}

// With a right checksum: a manifest that some other program wrote.
TEST_F(PartsTest, AManifestWhoseImagesAreNotInItsFilesIsRefused) {
    Store store = open();
    commit(store, image::Layout::group(2));
    const std::string text = to_text(*store.choose({}, false).manifest);
    std::pair<const char*, const char*> changes[] = {
        {"\"layout\": \"group:2\"", "\"layout\": \"group:0\""},
        {"\"layout\": \"group:2\"", "\"layout\": \"shared\""},
        {"\"layout\": \"group:2\"", "\"layout\": 2"},
        {"\"fermata_manifest\": 8", "\"fermata_manifest\": 5"},
        {"\"fermata_manifest\": 8", "\"fermata_manifest\": 9"},
        {"\"shared_bytes\": 0", "\"shared_bytes\": 4096"},
        {"\"file\": \"ranks-000002.img\",\n   \"bytes\"", "\"file\": \"ranks-000000.img\",\n   \"bytes\""},
        {"\"file\": \"ranks-000002.img\",\n   \"bytes\"", "\"file\": \"ranks-000003.img\",\n   \"bytes\""},
        {"\"file\": \"ranks-000002.img\",\n   \"offset\"", "\"file\": \"ranks-000005.img\",\n   \"offset\""},
        {"\"offset\": 2097152", "\"offset\": 1099511627776"},
        {"\"bytes\": 50", "\"bytes\": 18446744073709551615"},
        {"\"level\": \"files\"", "\"level\": \"memory\""}};
    for (auto [from, to] : changes) {
        std::string body = text.substr(0, text.rfind("xxh3-128 "));
        size_t at = body.find(from);
        ASSERT_NE(at, std::string::npos) << from << "\n" << body;
        body.replace(at, std::strlen(from), to);
        body += "xxh3-128 " + image::checksum_of(body.data(), body.size()).hex() + "\n";
        EXPECT_THROW(parse_manifest(body, "m"), Error) << to;
    }
}

}  // namespace
}  // namespace fermata::store
