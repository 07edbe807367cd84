#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/fd.h"
#include "image/format.h"
#include "image/image.h"
#include "image/save_options.h"
#include "image/shared.h"

namespace fermata::image {
namespace {
namespace fs = std::filesystem;

constexpr uint64_t kBase = 0x10000000;
const std::string kDigits = "00112233445566778899aabbccddeeff0123456789abcdeffedcba9876543210";
const std::string kWord = "the sea was wet as wet could be";

class EncryptionTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/fermata-key-XXXXXX";
        directory_ = mkdtemp(name);
        path_ = directory_ + "/rank-000000.img";
        key_ = Key::from_file(key_file("key", kDigits + "\n"));
        other_ = Key::from_file(key_file("other", std::string(64, 'a')));
        // Runs that are written straight, small ones that are gathered, zeros between.
        memory_.resize(700 * kPage);
        std::mt19937 random(5);
        for (size_t page = 0; page < 700; ++page) {
            if (page > 400 && page % 3 == 0) continue;
            for (size_t at = page * kPage; at < (page + 1) * kPage; at += kWord.size() + 1)
                if (at + kWord.size() < memory_.size() && (page % 2 || random() % 8))
                    std::memcpy(memory_.data() + at, kWord.data(), kWord.size());
                else
                    memory_[at] = static_cast<char>(random());
        }
    }
    void TearDown() override { fs::remove_all(directory_); }

    std::string key_file(const std::string& name, const std::string& text, mode_t mode = 0600) {
        std::string path = directory_ + "/" + name;
        std::ofstream(path) << text;
        ::chmod(path.c_str(), mode);
        return path;
    }
    WriteOptions options(const std::string& words, KeyPointer key) {
        WriteOptions o = SaveOptions::parse(words).write;
        o.sync = false;
        o.key = std::move(key);
        return o;
    }
    void write(const std::string& words = "", uint32_t generation = 3) {
        fs::remove(path_);
        Writer writer(path_, {11, generation, Rank(0), 1}, options(words, key_));
        writer.blob("process", kWord.data(), kWord.size());
        writer.run(kBase, memory_.data(), memory_.size());
        writer.finish();
    }
    std::vector<char> load(const Reader& reader) {
        std::vector<char> back(memory_.size(), 0);
        reader.load([&](const Extent& e) { return back.data() + (e.address - kBase); });
        return back;
    }
    std::string refusal(const Key* key) { return refusal(path_, key); }
    static std::string refusal(const std::string& path, const Key* key) {
        try {
            Reader(path, key).verify();
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }
    void flip(const std::string& path, uint64_t at) {
        std::string bytes = read_file(path);
        bytes[at] = static_cast<char>(bytes[at] ^ 1);
        std::ofstream(path, std::ios::binary) << bytes;
    }
    static bool has(const std::string& text, const std::string& part) {
        return text.find(part) != std::string::npos;
    }

    std::string directory_, path_;
    KeyPointer key_, other_;
    std::vector<char> memory_;
};

TEST_F(EncryptionTest, KeyFilesThatDoNotServeAreRefused) {
    auto why = [](const std::string& path) -> std::string {
        try {
            Key::from_file(path);
        } catch (const KeyError& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(why(key_file("good", kDigits)), "");
    EXPECT_NE(key_->id(), other_->id());
    EXPECT_EQ(key_->id(), Key::from_file(directory_ + "/good")->id());
    EXPECT_TRUE(has(why(directory_ + "/none"), "/none cannot be opened: No such file"));
    EXPECT_TRUE(has(why(directory_), "is not a file"));
    EXPECT_TRUE(has(why(key_file("short", kDigits.substr(1))), "64 hex digits"));
    EXPECT_TRUE(has(why(key_file("long", kDigits + "00")), "64 hex digits"));
    EXPECT_TRUE(has(why(key_file("phrase", kDigits.substr(1) + "g")), "64 hex digits"));
    EXPECT_TRUE(has(why(key_file("world", kDigits, 0644)), "chmod 600"));
    EXPECT_TRUE(has(why(key_file("group", kDigits, 0640)), "chmod 600"));
}

TEST_F(EncryptionTest, WhatIsWrittenComesBackAndNothingOfItIsInTheFile) {
    for (const char* words : {"", "io=direct threads=3", "compress=lz4 threads=2", "compress=shuffle-zstd",
                              "compress=auto", "threads=1 io=buffered"}) {
        write(words);
        std::string file = read_file(path_);
        EXPECT_FALSE(has(file, kWord.substr(0, 8))) << words;
        EXPECT_FALSE(has(file, "process")) << words << ": the index, too";
        Reader reader(path_, key_.get());
        EXPECT_EQ(load(reader), memory_) << words;
        EXPECT_EQ(reader.blob("process").size(), kWord.size());
        // Nothing at all that compresses or repeats: no page of the file is plain, but for padding.
        std::string zeros(64, '\0');
        for (const Block& block : reader.blocks())
            EXPECT_FALSE(has(file.substr(block.offset, block.stored), zeros)) << words;
    }
}

TEST_F(EncryptionTest, TheSameContentIsNeverTheSameBytesTwice) {
    write();
    std::string first = read_file(path_);
    write();
    std::string second = read_file(path_);
    ASSERT_EQ(first.size(), second.size());
    for (size_t at = 0; at + 16 <= Reader(path_, key_.get()).summary().written; at += 16)
        ASSERT_NE(first.compare(kPage + at, 16, second, kPage + at, 16), 0) << at;
}

TEST_F(EncryptionTest, OneLineForEachKeyThatDoesNotFit) {
    write();
    EXPECT_EQ(refusal(key_.get()), "");
    EXPECT_TRUE(has(refusal(nullptr), "rank-000000.img is encrypted: name its key with --encrypt-key"));
    EXPECT_TRUE(has(refusal(other_.get()), "is encrypted with another key"));
    fs::remove(path_);
    Writer(path_, {11, 3, Rank(0), 1}, options("", nullptr)).finish();
    EXPECT_EQ(refusal(nullptr), "");
    EXPECT_TRUE(has(refusal(key_.get()), "is not encrypted: leave out the key"));
}

// Blocks are bound to their place, their image and its identity; checksums that are made right do not help.
TEST_F(EncryptionTest, NothingCanBeMovedOrChanged) {
    write("threads=1");
    std::string good = read_file(path_);
    Reader reader(path_, key_.get());
    ASSERT_GT(reader.blocks().size(), 1u);
    Block a = reader.blocks()[0], b = reader.blocks()[1];
    auto put = [&](const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; };
    for (uint64_t at : {a.offset, a.offset + a.stored - 1, b.offset + 77}) {
        put(good);
        flip(path_, at);
        EXPECT_TRUE(has(refusal(key_.get()), "are not what was encrypted")) << refusal(key_.get());
    }
    std::string swapped = good;
    size_t n = std::min(a.stored, b.stored);
    swapped.replace(a.offset, n, good, b.offset, n);
    swapped.replace(b.offset, n, good, a.offset, n);
    put(swapped);
    EXPECT_TRUE(has(refusal(key_.get()), "are not what was encrypted"));
    // The whole index and header of another image under the same key: the blocks are not its.
    write("threads=1");
    std::string other = read_file(path_);
    put(other.substr(0, kPage) + good.substr(kPage, a.stored) + other.substr(kPage + a.stored));
    EXPECT_TRUE(has(refusal(key_.get()), "are not what was encrypted"));
    // Every field of the header, with right checksums.
    for (size_t at = 0; at < offsetof(Header, index_checksum); ++at) {
        std::string bytes = good;
        bytes[at] = static_cast<char>(bytes[at] ^ 4);
        Header header;
        std::memcpy(&header, bytes.data(), sizeof header);
        header.checksum = checksum_of(&header, offsetof(Header, checksum));
        std::memcpy(bytes.data(), &header, sizeof header);
        put(bytes);
        EXPECT_NE(refusal(key_.get()), "") << at;
    }
}

TEST_F(EncryptionTest, IncrementsReadTheBlocksOfEarlierImagesWithTheirKeys) {
    for (int number : {1, 2}) fs::create_directory(directory_ + "/gen-00000" + std::to_string(number));
    auto path = [&](int number) {
        return directory_ + "/gen-00000" + std::to_string(number) + "/rank-000000.img";
    };
    Content first;
    auto at = reinterpret_cast<uint64_t>(memory_.data());
    uint64_t text = (at + kPage - 1) / kPage * kPage;
    {
        Writer writer(path(1), {11, 1, Rank(0), 1}, options("compress=lz4", key_));
        writer.run(kBase, memory_.data(), memory_.size());
        writer.share({{text, text + 3 * kPage}});
        writer.finish();
        first = writer.content();
    }
    std::vector<char> before = memory_;
    memory_[5] = 17;
    {
        Writer writer(path(2), {11, 2, Rank(0), 1}, options("", key_));
        writer.run(kBase, memory_.data(), kPage);
        writer.keep(first, {{kBase + kPage, kBase + memory_.size()}, {text, text + 3 * kPage}});
        writer.finish();
    }
    Reader reader(path(2), key_.get());
    std::vector<char> back(memory_.size(), 0), shared(3 * kPage);
    reader.load([&](const Extent& e) {
        return e.address >= kBase && e.address < kBase + memory_.size() ? back.data() + (e.address - kBase)
                                                                        : shared.data() + (e.address - text);
    });
    EXPECT_EQ(back, memory_);
    EXPECT_EQ(std::memcmp(shared.data(), before.data() + (text - at), shared.size()), 0);
    EXPECT_TRUE(has(refusal(path(2), other_.get()), "another key"));
    for (const auto& entry : fs::directory_iterator(directory_ + "/gen-000001"))
        EXPECT_FALSE(has(read_file(entry.path()), kWord)) << entry.path();
    // An image made again in the place of the earlier one, with the same content and key.
    fs::remove(path(1));
    Writer again(path(1), {11, 1, Rank(0), 1}, options("compress=lz4", key_));
    again.run(kBase, before.data(), before.size());
    again.share({{text, text + 3 * kPage}});
    again.finish();
    EXPECT_TRUE(has(refusal(path(2), key_.get()), "refers to another")) << refusal(path(2), key_.get());
}

TEST_F(EncryptionTest, TextHasOneNameUnderOneKeyWhoeverWritesIt) {
    auto at = (reinterpret_cast<uint64_t>(memory_.data()) + kPage - 1) / kPage * kPage;
    auto share = [&](const std::string& name, const KeyPointer& key) {
        fs::create_directories(directory_ + "/gen-000003");
        Writer writer(directory_ + "/gen-000003/" + name, {11, 3, Rank(0), 1}, options("", key));
        writer.share({{at, at + 300 * kPage}});
        writer.finish();
        return writer.content().references.at(0).checksum;
    };
    Checksum one = share("rank-000000.img", key_), two = share("rank-000001.img", key_),
             other = share("rank-000002.img", other_), plain = share("rank-000003.img", nullptr);
    EXPECT_EQ(one, two);
    EXPECT_FALSE(one == other || one == plain || other == plain);
    for (const char* name : {"rank-000000.img", "rank-000001.img"})
        EXPECT_EQ(refusal(directory_ + "/gen-000003/" + name, key_.get()), "");
    EXPECT_EQ(refusal(directory_ + "/gen-000003/rank-000002.img", other_.get()), "");
    std::string text = directory_ + "/gen-000003/" + text_name(one);
    EXPECT_FALSE(has(read_file(text), kWord));
    flip(text, 100);
    EXPECT_TRUE(has(refusal(directory_ + "/gen-000003/rank-000001.img", key_.get()), text_name(one)));
}

TEST_F(EncryptionTest, AForkedChildAndAFileOfAllRanks) {
    SharedFile shared(files::Folder::at(directory_));
    path_ = shared.path();
    Writer writer = Writer::in_shared(path_, {11, 3, Rank(0), 1}, options("compress=shuffle-lz4", key_));
    writer.blob("process", kWord.data(), kWord.size());
    writer.run(kBase, memory_.data(), 100 * kPage);
    writer.later();
    writer.run(kBase + 100 * kPage, memory_.data() + 100 * kPage, memory_.size() - 100 * kPage);
    writer.prepare();
    std::vector<uint64_t> begins = SharedFile::lay_out({writer.room()});
    shared.finish(11, 3, begins, begins[0] + writer.room());
    writer.place(begins[0]);
    writer.write_first();
    pid_t child = ::fork();
    if (child == 0) {
        writer.write_rest();
        ::_exit(0);
    }
    std::vector<char> was = memory_;
    std::fill(memory_.begin() + 100 * kPage, memory_.end(), 'x');
    int status = 0;
    ::waitpid(child, &status, 0);
    writer.conclude();
    EXPECT_FALSE(has(read_file(path_), kWord.substr(0, 8)));
    Reader reader(place_of(files::Folder::at(directory_), Rank(0)), key_.get());
    EXPECT_EQ(load(reader), was);
}

TEST_F(EncryptionTest, TheKeyIsInNoChild) {
    pid_t child = ::fork();
    if (child == 0) {
        std::array<uint8_t, 32> mine, zeros;
        key_->derive("x", nullptr, 0, mine);
        ::chmod((directory_ + "/key").c_str(), 0600);
        KeyPointer zero = Key::from_file(key_file("zero", std::string(64, '0')));
        zero->derive("x", nullptr, 0, zeros);
        ::_exit(mine == zeros ? 0 : 1);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace fermata::image
