#include "image/image.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"

namespace fermata::image {
namespace {

class ImageTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/fermata-image-XXXXXX";
        directory_ = mkdtemp(name);
        path_ = directory_ + "/rank-000000.img";
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }

    // Two regions, one of them larger than a chunk, and two blobs.
    Summary write() {
        std::mt19937_64 random(7);
        small_.resize(2 * kPage);
        large_.resize(kChunk + 3 * kPage);
        for (auto* data : {&small_, &large_})
            for (auto& byte : *data) byte = static_cast<char>(random());
        Writer writer(path_, {11, 3, 1, 4});
        writer.blob("process", "abc", 3);
        writer.blob("empty", "", 0);
        writer.begin_region("first", 5);
        writer.run(0x10000, small_.data(), kPage);
        writer.run(0x20000, small_.data() + kPage, kPage);
        writer.begin_region("second", 6);
        writer.run(0x10000000, large_.data(), large_.size());
        return writer.finish(false);
    }
    void flip(uint64_t offset) {
        std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(static_cast<std::streamoff>(offset));
        char byte = 0;
        file.get(byte);
        file.seekp(static_cast<std::streamoff>(offset));
        file.put(static_cast<char>(byte ^ 0x10));
    }
    std::string refusal() {
        try {
            Reader reader(path_);
            reader.verify();
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }

    std::string directory_, path_;
    std::vector<char> small_, large_;
};

TEST_F(ImageTest, ReadsBackWhatWasWritten) {
    Summary summary = write();
    Reader reader(path_);
    EXPECT_EQ(reader.identity(), (Identity{11, 3, 1, 4}));
    EXPECT_EQ(reader.summary().checksum, summary.checksum);
    EXPECT_EQ(reader.summary().bytes, std::filesystem::file_size(path_));
    EXPECT_EQ(reader.blob("process").size(), 3u);
    EXPECT_TRUE(reader.blob("empty").empty());
    EXPECT_THROW(reader.blob("none"), Error);
    ASSERT_EQ(reader.regions().size(), 2u);
    ASSERT_EQ(reader.regions()[0].chunks.size(), 2u);
    ASSERT_EQ(reader.regions()[1].chunks.size(), 2u);
    std::vector<char> back(large_.size());
    for (const Chunk& chunk : reader.regions()[1].chunks)
        reader.read(chunk, back.data() + (chunk.address - 0x10000000));
    EXPECT_EQ(back, large_);
    std::filesystem::perms perms = std::filesystem::status(path_).permissions();
    EXPECT_EQ(perms, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(ImageTest, EveryFlippedByteOfHeaderAndIndexIsNoticed) {
    Summary summary = write();
    uint64_t index = kPage + small_.size() + large_.size();
    for (uint64_t at = 0; at < 96; ++at) {
        flip(at);
        EXPECT_NE(refusal(), "") << "header byte " << at;
        flip(at);
    }
    for (uint64_t at = index; at < summary.bytes; ++at) {
        flip(at);
        EXPECT_THROW(Reader{path_}, Error) << "index byte " << at;
        flip(at);
    }
    EXPECT_EQ(refusal(), "");
}

TEST_F(ImageTest, FlippedDataIsNoticedWithFileAndOffset) {
    write();
    for (uint64_t at : {kPage, kPage + 1, 3 * kPage - 1, 3 * kPage + kChunk + 5}) {
        flip(at);
        std::string line = refusal();
        EXPECT_NE(line.find(path_), std::string::npos) << line;
        EXPECT_NE(line.find("offset"), std::string::npos) << line;
        flip(at);
    }
}

TEST_F(ImageTest, EveryTruncationIsNoticed) {
    Summary summary = write();
    for (uint64_t size : {summary.bytes - 1, summary.bytes - 40, kPage + kChunk, kPage, kPage - 1,
                          uint64_t{10}, uint64_t{0}}) {
        std::filesystem::resize_file(path_, size);
        EXPECT_NE(refusal(), "") << size;
    }
}

TEST_F(ImageTest, AnUnfinishedImageIsRefused) {
    {
        Writer writer(path_, {});
        writer.begin_region("r", 1);
        std::vector<char> page(kPage, 1);
        writer.run(0, page.data(), kPage);
    }
    EXPECT_NE(refusal().find("not a Fermata image"), std::string::npos);
    EXPECT_THROW(Writer(path_, {}), Error) << "an existing file is never overwritten";
}

}  // namespace
}  // namespace fermata::image
