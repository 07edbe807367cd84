#include "image/image.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "base/error.h"
#include "image/codec.h"
#include "image/compare.h"
#include "image/format.h"
#include "image/hash.h"
#include "image/page_cache.h"
#include "image/pages.h"
#include "image/save_options.h"
#include "image/shared.h"

namespace fermata::image {
namespace {

// Memory as a program has it: large arrays of numbers, single pages here and there, zeros between.
class Memory {
  public:
    static constexpr uint64_t kPages = 5000;

    explicit Memory(unsigned seed) : random_(seed) {
        void* p = ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) throw std::bad_alloc();
        data_ = static_cast<char*>(p);
        for (uint64_t page = 0; page < kPages;) {
            uint64_t n = random_() % 4 ? 1 + random_() % 5 : 1 + random_() % 1500;
            auto kind = random_() % 4;
            for (; n > 0 && page < kPages; --n, ++page) fill(page, kind);
        }
        data_[size() - 1] = 1;  // the last byte of a page counts, too
    }
    ~Memory() { ::munmap(data_, size()); }

    void fill(uint64_t page, uint64_t kind) {
        char* p = data_ + page * kPage;
        if (kind == 0) return;  // zeros
        for (uint64_t i = 0; i < kPage; i += 8) {
            double smooth = 1.0 + 1e-7 * static_cast<double>(page * 512 + i);
            uint64_t noise = random_();
            std::memcpy(p + i, kind == 1 ? static_cast<void*>(&noise) : static_cast<void*>(&smooth), 8);
        }
    }
    uint64_t size() const { return kPages * kPage; }
    char* data() { return data_; }

  private:
    std::mt19937_64 random_;
    char* data_;
};

constexpr uint64_t kBase = 0x10000000;

class ImageTest : public testing::Test {
  protected:
    void SetUp() override { make_directory("/tmp"); }
    void make_directory(const std::string& parent) {
        std::string name = parent + "/fermata-image-XXXXXX";
        directory_ = mkdtemp(name.data());
        path_ = directory_ + "/rank-000000.img";
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }

    static WriteOptions options(const std::string& words) {
        WriteOptions o = SaveOptions::parse(words).write;
        o.sync = false;
        return o;
    }
    // Two far ranges and two blobs.
    Summary write(Memory& memory, const std::string& words = "") {
        Writer writer(path_, {11, 3, Rank(1), 4}, options(words));
        writer.blob("process", "abc", 3);
        writer.blob("empty", "", 0);
        uint64_t half = memory.size() / 2 / kPage * kPage;
        writer.run(kBase, memory.data(), half);
        writer.run(kBase + 2 * memory.size(), memory.data() + half, memory.size() - half);
        return writer.finish();
    }
    std::vector<char> load(uint64_t size, unsigned threads = 0) {
        Reader reader(path_);
        std::vector<char> back(size, 0);
        uint64_t half = size / 2 / kPage * kPage;
        reader.load(
            [&](const Extent& e) {
                uint64_t at = e.address - kBase;
                return back.data() + (at < half ? at : at - 2 * size + half);
            },
            threads);
        return back;
    }
    // The page cache has nothing of the image any more, where the kernel lets go of it.
    void forget() {
        Fd fd = open_file(path_, O_RDONLY);
        ::fsync(fd.get());
        ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
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
};

// Who compares with checksums finds what has changed, by blocks, and never keeps a byte that has.
TEST_F(ImageTest, UnchangedMemoryIsKnownByItsChecksums) {
    Memory memory(3);
    std::mt19937 random(9);
    std::vector<char> before(memory.data(), memory.data() + memory.size());
    auto base = reinterpret_cast<uint64_t>(memory.data());
    for (const char* words : {"", "compress=lz4", "threads=3"}) {
        std::filesystem::remove(path_);
        WriteOptions how = options(words);
        how.largest_block = 256 << 10;
        Writer writer(path_, {11, 3, Rank(1), 4}, how);
        writer.run(base, memory.data(), memory.size());
        writer.finish();
        Content content = writer.content();
        uint64_t all = 0, same = 0;
        for (const Extent& extent : content.extents) all += extent.length;
        std::vector<Range> everything = {{base, base + 100 * kPage},
                                         {base + 100 * kPage, base + memory.size()}};
        for (Range range : unchanged_since(content, everything)) same += range.size();
        EXPECT_EQ(same, all) << words;
        std::copy(memory.data(), memory.data() + memory.size(), before.begin());
        for (int i = 0; i < 3; ++i) memory.data()[random() % memory.size()] ^= 1;
        same = 0;
        for (Range range : unchanged_since(content, everything)) {
            same += range.size();
            const uint64_t at = range.begin() - base;
            EXPECT_EQ(std::memcmp(memory.data() + at, before.data() + at, range.size()), 0);
        }
        EXPECT_LT(same, all);
        EXPECT_GT(same, all / 2);
        // What is not there any more is not read.
        std::vector<Range> half = {{base, base + memory.size() / 2 / kPage * kPage}};
        for (Range range : unchanged_since(content, half)) EXPECT_LE(range.end(), half[0].end());
    }
}

class ImageWays : public ImageTest, public testing::WithParamInterface<const char*> {};

TEST_P(ImageWays, ReadsBackWhatWasWritten) {
    Memory memory(7);
    Summary summary = write(memory, GetParam());
    Reader reader(path_);
    EXPECT_EQ(reader.identity(), (Identity{11, 3, Rank(1), 4}));
    EXPECT_EQ(reader.summary().checksum, summary.checksum);
    EXPECT_EQ(reader.summary().bytes, std::filesystem::file_size(path_));
    EXPECT_EQ(reader.summary().content, summary.content);
    EXPECT_LT(summary.content, memory.size()) << "zero pages cost nothing";
    EXPECT_EQ(reader.blob("process").size(), 3u);
    EXPECT_TRUE(reader.blob("empty").empty());
    EXPECT_THROW(reader.blob("none"), Error);
    std::filesystem::perms perms = std::filesystem::status(path_).permissions();
    EXPECT_EQ(perms, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    for (unsigned threads : {1u, 3u}) {
        std::vector<char> back = load(memory.size(), threads);
        ASSERT_EQ(std::memcmp(back.data(), memory.data(), memory.size()), 0) << threads;
    }
}

// With and without the page cache's help, and damage is noticed there, too.
TEST_P(ImageWays, ReadsBackPastThePageCache) {
    Memory memory(8);
    write(memory, GetParam());
    uint64_t half = memory.size() / 2 / kPage * kPage;
    for (bool cached : {false, true}) {
        Pages back(memory.size(), "to compare");
        Reader reader(path_);
        reader.set_uncached_from(0);
        if (cached)
            (void)read_file(path_);
        else
            forget();
        reader.load([&](const Extent& e) {
            uint64_t at = e.address - kBase;
            return back.data() + (at < half ? at : at - 2 * memory.size() + half);
        });
        ASSERT_EQ(std::memcmp(back.data(), memory.data(), memory.size()), 0) << cached;
    }
    Reader reader(path_);
    reader.set_uncached_from(0);
    flip(reader.blocks().back().offset + 100);
    forget();
    try {
        reader.verify();
        EXPECT_NE(reader.blocks().back().codec, Codec::none) << "bits that a codec does not look at";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("offset"), std::string::npos) << error.what();
    }
}

TEST_F(ImageTest, AFilePastThePageCacheIsReadToItsEndAndNoFurther) {
    std::string content(5 * kPage + 100, ' ');
    std::mt19937_64 random(3);
    for (char& c : content) c = static_cast<char>(random());
    std::ofstream(path_) << content;
    forget();
    Fd fd = open_file(path_, O_RDONLY);
    Pages to(8 * kPage, "to compare");
    for (bool wanted : {true, false}) {
        UncachedFile file(fd.get(), wanted);
        EXPECT_EQ(file.direct(), wanted && !page_cache_is_better(fd.get()));
        for (auto [offset, size] :
             {std::pair<uint64_t, uint64_t>{kPage, 2 * kPage}, {5, 3000}, {5 * kPage, 100}}) {
            file.read(to.data(), size, offset, path_);
            EXPECT_EQ(content.compare(offset, size, to.data(), size), 0) << offset;
        }
        EXPECT_THROW(file.read(to.data(), 2 * kPage, 4 * kPage, path_), Error);
        EXPECT_THROW(file.read(to.data(), kPage, 8 * kPage, path_), Error);
        uint64_t n = file.read_cached(to.data(), 2 * kPage, 0);
        EXPECT_EQ(content.compare(0, n, to.data(), n), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(All, ImageWays,
                         testing::Values("", "threads=1", "io=buffered", "io=direct threads=7",
                                         "compress=lz4", "compress=zstd:3 io=buffered",
                                         "compress=shuffle-lz4", "compress=shuffle-zstd threads=1",
                                         "compress=auto"));

TEST_F(ImageTest, CompressionMakesNumbersSmaller) {
    Memory memory(7);
    uint64_t plain = write(memory).bytes;
    for (const char* codec : {"lz4", "zstd", "shuffle-lz4", "shuffle-zstd"}) {
        std::filesystem::remove(path_);
        uint64_t packed = write(memory, std::string("compress=") + codec).bytes;
        EXPECT_LT(packed, plain * 9 / 10) << codec;
    }
}

TEST_F(ImageTest, ShuffleIsUndone) {
    std::mt19937_64 random(3);
    std::vector<uint64_t> in(512 * 7), out(in.size()), back(in.size());
    for (auto& word : in) word = random();
    shuffle(in.data(), out.data(), in.size() * 8);
    for (size_t k = 0; k < 8; ++k)
        for (size_t i = 0; i < in.size(); i += 97)
            ASSERT_EQ(reinterpret_cast<uint8_t*>(out.data())[k * in.size() + i],
                      reinterpret_cast<uint8_t*>(in.data())[8 * i + k]);
    unshuffle(out.data(), back.data(), in.size() * 8);
    EXPECT_EQ(in, back);
}

TEST_F(ImageTest, ZeroPagesAreStoredWhereTheReaderHasSomethingElse) {
    std::vector<char> zeros(10 * kPage, 0);
    {
        Writer writer(path_, {}, options(""));
        writer.run_on_ground(kBase, zeros.data(), zeros.size());
        EXPECT_EQ(writer.finish().content, zeros.size());
    }
    std::vector<char> ground(10 * kPage, 'x');
    Reader(path_).load([&](const Extent& e) { return ground.data() + (e.address - kBase); });
    EXPECT_EQ(ground, zeros);
}

// The writer of a forked child: a bare fork, what was captured is what the memory held then.
TEST_F(ImageTest, AForkedChildWritesTheMemoryOfItsMoment) {
    Memory memory(9), before(9);
    uint64_t half = memory.size() / 2 / kPage * kPage;
    Writer writer(path_, {11, 3, Rank(1), 4}, options("compress=shuffle-lz4"));
    writer.run(kBase, memory.data(), half);
    writer.later();
    writer.run(kBase + 2 * memory.size(), memory.data() + half, memory.size() - half);
    writer.prepare();
    writer.write_first();
    int go[2];
    ASSERT_EQ(pipe(go), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        if (::read(go[0], &byte, 1) != 1) _exit(1);
        writer.write_rest();
        _exit(0);
    }
    std::memset(memory.data(), 0x55, memory.size());
    ASSERT_EQ(::write(go[1], "x", 1), 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    Summary summary = writer.conclude();
    EXPECT_EQ(summary.bytes, std::filesystem::file_size(path_));
    std::vector<char> back = load(memory.size());
    EXPECT_EQ(std::memcmp(back.data(), before.data(), before.size()), 0);
    ::close(go[0]), ::close(go[1]);
}

// A chain of images, each with what has changed since the one before, in the directories that a store makes.
TEST_F(ImageTest, AChainOfIncrementsReadsBackAsTheLast) {
    Memory memory(21);
    std::mt19937_64 random(4);
    Content newest;
    uint64_t full = 0;
    for (uint32_t generation = 1; generation <= 6; ++generation) {
        std::vector<Range> unchanged, changed;
        std::vector<bool> dirty(Memory::kPages, generation == 1);
        if (generation > 1)
            for (int i = 0; i < 60; ++i) {
                uint64_t page = random() % Memory::kPages;
                dirty[page] = true;
                if (i % 10 == 0)
                    std::memset(memory.data() + page * kPage, 0, kPage);  // to zero is a change, too
                else
                    memory.fill(page, 1 + random() % 3);
            }
        for (uint64_t page = 0; page < Memory::kPages; ++page) {
            auto& list = dirty[page] ? changed : unchanged;
            uint64_t at = kBase + page * kPage;
            if (!list.empty() && list.back().end() == at)
                list.back() = {list.back().begin(), at + kPage};
            else
                list.push_back(Range::sized(at, kPage));
        }
        std::string place = fmt::format("{}/gen-{:06}", directory_, generation);
        std::filesystem::create_directory(place);
        path_ = place + "/rank-000000.img";
        Writer writer(path_, {11, generation, Rank(0), 1}, options(generation % 2 ? "" : "compress=lz4"));
        for (Range range : changed)
            writer.run(range.begin(), memory.data() + (range.begin() - kBase), range.size());
        writer.keep(newest, unchanged);
        Summary summary = writer.finish();
        newest = writer.content();
        if (generation == 1) full = summary.bytes;
        EXPECT_TRUE(generation == 1 || summary.bytes < full / 20) << summary.bytes;
        Reader reader(path_);
        EXPECT_LE(reader.references().size(), generation - 1);
        std::vector<char> back(memory.size(), 0);
        reader.load([&](const Extent& e) { return back.data() + (e.address - kBase); });
        ASSERT_EQ(std::memcmp(back.data(), memory.data(), memory.size()), 0) << generation;
    }
    EXPECT_EQ(refusal(), "");
    std::string last = path_;
    path_ = directory_ + "/gen-000001/rank-000000.img";
    flip(Reader(path_).blocks()[0].offset);
    path_ = last;
    EXPECT_NE(refusal().find("gen-000001/rank-000000.img is damaged"), std::string::npos) << refusal();
    std::filesystem::remove(directory_ + "/gen-000003/rank-000000.img");
    EXPECT_NE(refusal().find("gen-000003"), std::string::npos) << refusal();
}

TEST_F(ImageTest, AChildThatDiesIsNoSuccess) {
    Memory memory(9);
    Writer writer(path_, {}, options(""));
    writer.later();
    writer.run(kBase, memory.data(), memory.size());
    writer.prepare();
    writer.write_first();
    EXPECT_THROW(writer.conclude(), Error);
    EXPECT_NE(refusal(), "");
}

TEST_F(ImageTest, AFullDiskIsNamedWithItsOffset) {
    Memory memory(5);
    struct rlimit before, small;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1 << 20;
    signal(SIGXFSZ, SIG_IGN);
    for (const char* words : {"", "io=buffered threads=1", "compress=lz4"}) {
        setrlimit(RLIMIT_FSIZE, &small);
        std::string line;
        try {
            write(memory, words);
        } catch (const Error& error) {
            line = error.what();
        }
        setrlimit(RLIMIT_FSIZE, &before);
        EXPECT_NE(line.find(path_ + " at offset"), std::string::npos) << line;
        EXPECT_NE(refusal(), "") << words;
        std::filesystem::remove(path_);
    }
}

TEST_F(ImageTest, EveryFlippedByteOfHeaderAndIndexIsNoticed) {
    std::vector<char> page(3 * kPage, 'a');
    Summary summary;
    {
        Writer writer(path_, {1, 2, Rank(3), 4}, options(""));
        writer.blob("process", "abc", 3);
        writer.run(kBase, page.data(), page.size());
        summary = writer.finish();
    }
    for (uint64_t at = 0; at < 96; ++at) {
        flip(at);
        EXPECT_NE(refusal(), "") << "header byte " << at;
        flip(at);
    }
    for (uint64_t at = 4 * kPage; at < summary.bytes; ++at) {
        flip(at);
        EXPECT_THROW(Reader{path_}, Error) << "index byte " << at;
        flip(at);
    }
    EXPECT_EQ(refusal(), "");
}

TEST_F(ImageTest, FlippedDataIsNoticedWithFileAndOffset) {
    for (const char* words : {"", "compress=shuffle-lz4", "compress=zstd"}) {
        Memory memory(7);
        write(memory, words);
        std::mt19937_64 random(1);
        Reader reader(path_);
        for (int i = 0; i < 30; ++i) {
            const Block& block = reader.blocks()[random() % reader.blocks().size()];
            uint64_t at = block.offset + random() % block.stored;
            flip(at);
            std::string line = refusal();
            if (line.empty()) {  // bits that a codec does not look at
                EXPECT_NE(*words, '\0') << at;
                EXPECT_EQ(std::memcmp(load(memory.size()).data(), memory.data(), memory.size()), 0);
            } else {
                EXPECT_NE(line.find(path_), std::string::npos) << line;
                EXPECT_NE(line.find(fmt::format("offset {}", block.offset)), std::string::npos) << line;
            }
            flip(at);
        }
        EXPECT_EQ(refusal(), "");
        std::filesystem::remove(path_);
    }
}

TEST_F(ImageTest, EveryTruncationIsNoticed) {
    Memory memory(7);
    Summary summary = write(memory);
    for (uint64_t size : {summary.bytes - 1, summary.bytes - 40, summary.bytes / 2, kPage, kPage - 1,
                          uint64_t{10}, uint64_t{0}}) {
        std::filesystem::resize_file(path_, size);
        EXPECT_NE(refusal(), "") << size;
    }
}

TEST_F(ImageTest, AnUnfinishedImageIsRefused) {
    std::vector<char> page(kPage, 1);
    {
        Writer writer(path_, {});
        writer.run(0, page.data(), kPage);
    }
    EXPECT_NE(refusal(), "");
    EXPECT_THROW(Writer(path_, {}), Error) << "an existing file is never overwritten";
}

// One page of header that claims an index of a GiB, which is a hole: neither memory nor time for it, whether
// its checksum is right or not.
TEST_F(ImageTest, AHoleForAnIndexIsRefusedBeforeThereIsMemoryForIt) {
    constexpr uint64_t kClaimed = 1 << 30;
    std::vector<char> zeros(1 << 20);
    Hash hash;
    for (uint64_t i = 0; i < kClaimed; i += zeros.size()) hash.add(zeros.data(), zeros.size());
    for (bool right : {true, false}) {
        Header header{};
        std::memcpy(header.magic, kMagic, sizeof kMagic);
        header.version = kFormatVersion;
        header.page = kPage;
        header.ranks = 1;
        header.index_offset = kPage;
        header.index_size = kClaimed;
        header.file_size = kPage + kClaimed;
        if (right) header.index_checksum = hash.sum();
        header.checksum = checksum_of(&header, offsetof(Header, checksum));
        {
            Fd fd = open_file(path_, O_WRONLY | O_CREAT | O_TRUNC, 0600);
            write_all(fd.get(), &header, sizeof header, path_);
            ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(header.file_size)), 0);
        }
        struct rusage before, after;
        ::getrusage(RUSAGE_SELF, &before);
        std::string said = refusal();
        ::getrusage(RUSAGE_SELF, &after);
        EXPECT_NE(said.find("mostly holes"), std::string::npos) << said;
        EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 << 10) << "KiB";
    }
}

// On tmpfs huge pages are made ahead of what is written: nothing of that stays, whatever was left out.
TEST_F(ImageTest, InMemoryAFileHasWhatItNeeds) {
    std::filesystem::remove_all(directory_);
    make_directory("/dev/shm");
    Memory memory(7);
    for (const char* words : {"", "threads=3", "compress=shuffle-lz4 threads=2", "io=direct"}) {
        Summary summary = write(memory, words);
        EXPECT_EQ(std::filesystem::file_size(path_), summary.bytes) << words;
        struct stat st {};
        ASSERT_EQ(::stat(path_.c_str(), &st), 0);
        EXPECT_LE(static_cast<uint64_t>(st.st_blocks) * 512, summary.bytes + kPage) << words;
        EXPECT_EQ(std::memcmp(load(memory.size()).data(), memory.data(), memory.size()), 0) << words;
        std::filesystem::remove(path_);
    }
}

// A file system in memory that is too small: a line that says so, no signal, and what fits is whole. In a
// mount namespace of a child (root, or a user's own namespace).
TEST_F(ImageTest, InMemoryThatIsFull) {
    constexpr uint64_t kContent = 40 << 20;
    std::vector<char> data(kContent);
    std::mt19937_64 random(1);
    for (uint64_t at = 0; at < kContent; at += 8) {
        uint64_t noise = random();
        std::memcpy(data.data() + at, &noise, 8);
    }
    auto* page = data.data() + (-reinterpret_cast<uint64_t>(data.data()) & (kPage - 1));
    uint64_t size = kContent - kPage;
    auto outcome = [&](uint64_t mib, const std::string& words) {
        if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 3;
        if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("none", directory_.c_str(), "tmpfs", 0, fmt::format("size={}m", mib).c_str()) != 0)
            return 4;
        WriteOptions how = options(words);
        std::vector<uint64_t> begins = {0};
        try {
            std::optional<SharedFile> all;
            const bool shared = how.layout.together();
            if (shared) all.emplace(files::Folder::at(directory_));
            Writer writer = shared ? Writer::in_shared(all->path(), {}, how) : Writer(path_, {}, how);
            writer.run(kBase, page, size);
            writer.prepare();
            if (shared) {
                begins = SharedFile::lay_out({writer.room()});
                all->finish(0, 0, begins, begins[0] + writer.room());
                writer.place(begins[0]);
            }
            writer.write_first();
            writer.write_rest();
            writer.conclude();
            std::vector<char> back(size);
            Place place = shared ? Place{directory_ + "/" + kSharedName, begins[0]} : Place(path_);
            Reader(place).load([&](const Extent& e) { return back.data() + (e.address - kBase); });
            return std::memcmp(back.data(), page, size) == 0 ? 0 : 6;
        } catch (const Error& error) {
            return std::string(error.what()).find("No space left on device") != std::string::npos ? 1 : 5;
        }
    };
    for (const char* words : {"", "threads=3", "layout=shared", "layout=shared threads=3"})
        for (uint64_t mib : {4, 17, 25, 34, 39, 40, 41, 43, 60}) {
            pid_t child = ::fork();
            if (child == 0) ::_exit(outcome(mib, words));
            int status = 0;
            ::waitpid(child, &status, 0);
            ASSERT_TRUE(WIFEXITED(status)) << words << " " << mib << ": signal " << WTERMSIG(status);
            // Around the content's size it depends on what the file itself needs.
            std::set<int> right = mib < 40 ? std::set{1} : mib >= 43 ? std::set{0} : std::set{0, 1};
            EXPECT_TRUE(right.count(WEXITSTATUS(status)))
                << WEXITSTATUS(status) << ": " << words << " " << mib;
        }
}

// Three ranks write into one file at once, in all ways; each reads back its own, and nobody's is touched by
// another's.
class OneFile : public ImageTest, public testing::WithParamInterface<const char*> {
    void SetUp() override { make_directory(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(OnDiskAndInMemory, OneFile, testing::Values("/tmp", "/dev/shm"));

TEST_P(OneFile, ForAllRanks) {
    const char* ways[] = {"", "compress=shuffle-lz4 io=direct", "compress=zstd threads=2 io=buffered"};
    std::vector<std::unique_ptr<Memory>> memory;
    std::vector<Writer> writers;
    SharedFile file(files::Folder::at(directory_));
    std::vector<uint64_t> lengths;
    for (uint32_t rank = 0; rank < 3; ++rank) {
        memory.push_back(std::make_unique<Memory>(rank));
        writers.push_back(Writer::in_shared(file.path(), {11, 3, Rank(rank), 3}, options(ways[rank])));
        writers[rank].run(kBase, memory[rank]->data(), memory[rank]->size());
        writers[rank].prepare();
        lengths.push_back(writers[rank].room());
    }
    std::vector<uint64_t> begins = SharedFile::lay_out(lengths);
    file.finish(11, 3, begins, begins[2] + lengths[2]);
    std::vector<std::thread> threads;
    std::vector<Summary> summaries(3);
    for (uint32_t rank = 0; rank < 3; ++rank)
        threads.emplace_back([&, rank] {
            writers[rank].place(begins[rank]);
            writers[rank].write_first();
            writers[rank].write_rest();
            summaries[rank] = writers[rank].conclude();
        });
    for (std::thread& thread : threads) thread.join();
    SharedFile::Table table = SharedFile::read(file.path());
    EXPECT_EQ(table.begins, begins);
    EXPECT_EQ(table.bytes, std::filesystem::file_size(file.path()));
    struct stat st {};
    ASSERT_EQ(::stat(file.path().c_str(), &st), 0);
    EXPECT_LE(static_cast<uint64_t>(st.st_blocks) * 512,
              summaries[0].bytes + summaries[1].bytes + summaries[2].bytes + (64 << 10))
        << "room that was reserved and not needed is kept";
    for (uint32_t rank = 0; rank < 3; ++rank) {
        EXPECT_LE(summaries[rank].bytes, lengths[rank]);
        Place place = place_of(files::Folder::at(directory_), Rank(rank));
        Reader reader(place);
        EXPECT_EQ(reader.identity(), (Identity{11, 3, Rank(rank), 3}));
        EXPECT_EQ(reader.summary().checksum, summaries[rank].checksum);
        std::vector<char> back(memory[rank]->size(), 0);
        reader.load([&](const Extent& e) { return back.data() + (e.address - kBase); });
        EXPECT_EQ(std::memcmp(back.data(), memory[rank]->data(), back.size()), 0) << rank;
    }
    EXPECT_THROW(place_of(files::Folder::at(directory_), Rank(3)), Error);

    // Damage is named by its offset in the file, and is nobody else's.
    path_ = file.path();
    const Reader second(place_of(files::Folder::at(directory_), Rank(1)));
    uint64_t at = second.offset_of(second.blocks()[0]);
    EXPECT_GT(at, begins[1]);
    flip(at);
    try {
        second.verify();
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(fmt::format("{} is damaged", path_)), std::string::npos);
        EXPECT_NE(std::string(error.what()).find(fmt::format("offset {}", at)), std::string::npos)
            << error.what();
    }
    Reader(place_of(files::Folder::at(directory_), Rank(0))).verify();
    Reader(place_of(files::Folder::at(directory_), Rank(2))).verify();
    std::filesystem::resize_file(path_, table.bytes - 1);
    EXPECT_THROW(place_of(files::Folder::at(directory_), Rank(0)), Error);
    flip(20);
    EXPECT_THROW(SharedFile::read(path_), Error);
}

// A sparse file may claim to be as long as it likes: there is no memory for its table before that is looked
// at.
TEST_P(OneFile, ATableThatNoJobHas) {
    SharedFile file(files::Folder::at(directory_));
    file.finish(11, 3, {kPage}, 2 * kPage);
    const uint32_t parts = 0xfffffff0;
    const uint64_t bytes = uint64_t{1} << 37;
    std::fstream all(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    all.seekp(12);
    all.write(reinterpret_cast<const char*>(&parts), sizeof parts);
    all.close();
    std::filesystem::resize_file(file.path(), bytes);
    try {
        SharedFile::read(file.path());
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("number of parts"), std::string::npos) << error.what();
    }
}

// Files of some ranks: each image is found by its rank in the file that is named by the lowest of them.
TEST_P(OneFile, ForSomeRanks) {
    const files::Folder folder = files::Folder::at(directory_);
    const std::vector<Rank> ranks = {Rank(2), Rank(5), Rank(1000)};
    SharedFile file(folder, group_name(ranks[0]));
    EXPECT_EQ(file.name(), "ranks-000002.img");
    std::vector<Writer> writers;
    std::vector<uint64_t> lengths;
    std::vector<std::unique_ptr<Memory>> memory;
    for (size_t i = 0; i < ranks.size(); ++i) {
        memory.push_back(std::make_unique<Memory>(i));
        writers.push_back(Writer::in_shared(file.path(), {11, 3, ranks[i], 1001}, options("compress=lz4")));
        writers[i].run(kBase, memory[i]->data(), memory[i]->size());
        writers[i].prepare();
        lengths.push_back(writers[i].room());
    }
    const std::vector<uint64_t> begins = SharedFile::lay_out(lengths);
    file.finish(11, 3, begins, begins[2] + lengths[2], ranks);
    for (size_t i = 0; i < ranks.size(); ++i) {
        writers[i].place(begins[i]);
        writers[i].write_first();
        writers[i].write_rest();
        writers[i].conclude();
        EXPECT_EQ(writers[i].content().references.back().lowest_of_group(), ranks[0]);
    }
    const SharedFile::Table table = SharedFile::read(file.path());
    EXPECT_EQ(table.ranks, ranks);
    EXPECT_EQ(table.begins, begins);
    for (size_t i = 0; i < ranks.size(); ++i) {
        Reader reader(place_in_group(folder, ranks[0], ranks[i]));
        EXPECT_EQ(reader.identity(), (Identity{11, 3, ranks[i], 1001}));
        std::vector<char> back(memory[i]->size(), 0);
        reader.load([&](const Extent& e) { return back.data() + (e.address - kBase); });
        EXPECT_EQ(std::memcmp(back.data(), memory[i]->data(), back.size()), 0) << i;
    }
    for (uint32_t other : {0u, 3u, 1001u})
        EXPECT_THROW(place_in_group(folder, ranks[0], Rank(other)), Error) << other;
    EXPECT_THROW(place_in_group(folder, Rank(5), Rank(5)), Error);
    // Every byte of the table counts.
    path_ = file.path();
    for (uint64_t at = 0; at < 40 + 3 * 12 + 16; ++at) {
        flip(at);
        EXPECT_THROW(SharedFile::read(path_), Error) << at;
        flip(at);
    }
    EXPECT_EQ(SharedFile::read(path_).ranks, ranks);
}

TEST(GroupName, IsTheLowestRanksAndNothingElse) {
    EXPECT_EQ(group_name(Rank(17)), "ranks-000017.img");
    EXPECT_EQ(lowest_of_group("ranks-000017.img"), Rank(17));
    EXPECT_EQ(lowest_of_group("ranks-1234567.img"), Rank(1234567));
    for (const char* other :
         {"ranks.img", "ranks-.img", "ranks-17.img", "ranks-0000017.img", "ranks-000017.im",
          "rank-000017.img", "ranks-10000000.img", "ranks--00017.img", "ranks-00001 .img"})
        EXPECT_FALSE(lowest_of_group(other)) << other;
}

// Increments across layouts: a part of either kind that refers to a file, then a file that refers to a part.
class Layouts : public ImageTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(OfAllRanksAndOfSome, Layouts, testing::Values("ranks.img", "ranks-000000.img"));
TEST_P(Layouts, IncrementsFromOneToTheOther) {
    const std::string name = GetParam();
    const std::vector<Rank> ranks = name == kSharedName ? std::vector<Rank>() : std::vector<Rank>{Rank(0)};
    const auto newest_place = [&](const files::Folder& folder) {
        return ranks.empty() || !folder.has(name) ? place_of(folder, Rank(0))
                                                  : place_in_group(folder, Rank(0), Rank(0));
    };
    Memory memory(5);
    Content newest;
    for (uint32_t generation = 1; generation <= 4; ++generation) {
        std::string place = fmt::format("{}/gen-{:06}", directory_, generation);
        std::filesystem::create_directory(place);
        memory.fill(generation % 3, 1);
        uint64_t written = generation == 1 ? memory.size() : (7 - generation) * kPage;
        bool shared = generation % 2 == 0;
        std::optional<SharedFile> file;
        if (shared) file.emplace(files::Folder::at(place), name);
        Identity who{11, generation, Rank(0), 1};
        Writer writer = shared ? Writer::in_shared(file->path(), who, options("compress=lz4"))
                               : Writer(place + "/rank-000000.img", who, options(""));
        writer.run(kBase, memory.data(), written);
        writer.keep(newest, {{kBase + written, kBase + memory.size()}});
        writer.prepare();
        if (shared) {
            std::vector<uint64_t> begins = SharedFile::lay_out({writer.room()});
            file->finish(11, generation, begins, begins[0] + writer.room(), ranks);
            writer.place(begins[0]);
        }
        writer.write_first();
        writer.write_rest();
        writer.conclude();
        newest = writer.content();
        std::vector<char> back(memory.size(), 0);
        Reader(newest_place(files::Folder::at(place))).load([&](const Extent& e) {
            return back.data() + (e.address - kBase);
        });
        ASSERT_EQ(std::memcmp(back.data(), memory.data(), memory.size()), 0) << generation;
    }
    std::filesystem::remove(directory_ + "/gen-000002/" + name);
    EXPECT_THROW(Reader(newest_place(files::Folder::at(directory_ + "/gen-000004"))), Error);
}

// A rank that would leave its part fails, and the one behind it keeps what it has.
TEST_F(ImageTest, NobodyWritesOutsideHisPart) {
    Memory memory(9);
    SharedFile file(files::Folder::at(directory_));
    Writer writer = Writer::in_shared(file.path(), {11, 3, Rank(0), 1}, options("io=buffered"));
    writer.run(kBase, memory.data(), memory.size());
    writer.prepare();
    writer.write_first();  // not yet placed
    writer.write_rest();
    EXPECT_THROW(writer.conclude(), Error);
    EXPECT_EQ(std::filesystem::file_size(file.path()), 0u);
}

}  // namespace
}  // namespace fermata::image
