// This test makes the small generations that docs/formats shows byte by byte, and compares the pages with
// them.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "base/fd.h"
#include "image/shared.h"
#include "store/store.h"

namespace fermata::store {
namespace {

constexpr uint64_t kPage = 4096, kAddress = 0x10000000000;

// Two pages of memory: a greeting, and zeros.
class Memory {
  public:
    explicit Memory(uint32_t rank) {
        data_ = static_cast<char*>(
            ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (data_ == MAP_FAILED) throw std::bad_alloc();
        std::memcpy(data_, rank == 0 ? "here is rank 0" : "here is rank 1", 14);
    }
    ~Memory() { ::munmap(data_, 2 * kPage); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    void into(image::Writer& writer) const {
        writer.blob("program", "/home/ann/solver", 16);
        writer.run(kAddress, data_, 2 * kPage);
    }

  private:
    char* data_;
};

// A page's lines of bytes, "    0010  46 45 …  what they are", after a line "    # NAME" of the file.
std::map<uint64_t, std::string> shown(const std::string& page, const std::string& name) {
    std::ifstream in(std::string(FORMATS) + "/" + page);
    static const std::regex row("    ([0-9a-f]{4,6})  ((?:[0-9a-f]{2} ?)+)( .*)?");
    std::map<uint64_t, std::string> rows;
    bool here = false;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("    # ")) here = line == "    # " + name;
        std::smatch match;
        if (!here || !std::regex_match(line, match, row)) continue;
        std::istringstream bytes(match[2]);
        std::string content;
        for (unsigned byte; bytes >> std::hex >> byte;) content.push_back(static_cast<char>(byte));
        rows[std::stoull(match[1], nullptr, 16)] = content;
    }
    return rows;
}

// As a page has to show it: rows of 16 bytes that are not all zero.
std::string dump(const std::string& content, uint64_t begin, uint64_t end) {
    std::string text;
    for (uint64_t at = begin; at < std::min<uint64_t>(end, content.size()); at += 16) {
        std::string row = content.substr(at, 16);
        if (row.find_first_not_of('\0') == std::string::npos) continue;
        text += fmt::format("    {:04x} ", at);
        for (unsigned char byte : row) text += fmt::format(" {:02x}", byte);
        text += "\n";
    }
    return text;
}

void compare(const std::string& page, const std::string& name, const std::string& content, uint64_t end) {
    const auto rows = shown(page, name);
    EXPECT_FALSE(rows.empty()) << page << " does not show " << name;
    for (const auto& [at, bytes] : rows)
        EXPECT_EQ(content.substr(at, bytes.size()), bytes)
            << page << ", " << name << " at " << std::hex << at;
    std::string lacking;
    for (uint64_t at = 0; at < std::min<uint64_t>(end, content.size()); at += 16)
        if (content.substr(at, 16).find_first_not_of('\0') != std::string::npos && !rows.count(at))
            lacking += fmt::format(" {:04x}", at);
    EXPECT_EQ(lacking, "") << page << " lacks rows of " << name;
    if (testing::Test::HasFailure()) std::cout << "# " << name << "\n" << dump(content, 0, end);
}

class Examples : public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        std::string name = std::string(GetParam()) + "/fermata-examples-XXXXXX";
        directory_ = mkdtemp(name.data());
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }

    static constexpr uint64_t kJob = 0x1122334455667788;

    // A generation of two ranks, committed; its text and those of its images.
    std::map<std::string, std::string> make(bool shared) {
        Store store = Store::for_writing(directory_);
        store.lock("test", kJob);
        GenerationInfo pending = store.begin();
        std::vector<image::Writer> writers;
        std::optional<image::SharedFile> all;
        std::vector<uint64_t> begins(2), rooms;
        if (shared) all.emplace(pending.folder);
        for (uint32_t rank = 0; rank < 2; ++rank) {
            image::Identity who{kJob, pending.number, Rank(rank), 2};
            image::Place place(pending.folder, shared ? image::kSharedName : image::image_name(Rank(rank)));
            writers.push_back(shared ? image::Writer::in_shared(place, who) : image::Writer(place, who));
            memory_[rank].into(writers[rank]);
            writers[rank].prepare();
            rooms.push_back(writers[rank].room());
        }
        Manifest manifest;
        if (shared) {
            begins = image::SharedFile::lay_out(rooms);
            manifest.layout = image::Layout::shared();
            manifest.files = {{image::kSharedName, begins[1] + rooms[1]}};
            all->finish(kJob, pending.number, begins, manifest.files[0].bytes);
        }
        for (uint32_t rank = 0; rank < 2; ++rank) {
            if (shared) writers[rank].place(begins[rank]);
            writers[rank].write_first();
            writers[rank].write_rest();
            image::Summary done = writers[rank].conclude();
            manifest.images.push_back({Rank(rank),
                                       shared ? image::kSharedName : image::image_name(Rank(rank)),
                                       done.bytes, done.checksum, begins[rank]});
        }
        manifest.job = kJob;
        manifest.job_name = "solver-4711";
        manifest.generation = pending.number;
        manifest.created = "2026-11-21 16:00:00";
        manifest.mpi = "openmpi";
        manifest.command = {"/home/ann/solver", "input.nml"};
        manifest.phases = {{"save", 0.25}};
        store.commit(pending, manifest);
        std::map<std::string, std::string> files;
        for (const std::string& name : pending.folder.names())
            files[name] = read_file(pending.folder.path_of(name));
        return files;
    }

    std::string directory_;
    Memory memory_[2] = {Memory(0), Memory(1)};
};

INSTANTIATE_TEST_SUITE_P(OnDiskAndInMemory, Examples, testing::Values("/tmp", "/dev/shm"));

TEST_P(Examples, Image) {
    auto files = make(false);
    compare("image.md", "rank-000000.img", files.at("rank-000000.img"), UINT64_MAX);
}

TEST_P(Examples, SharedFile) {
    auto files = make(true);
    compare("image.md", "ranks.img", files.at("ranks.img"), 2 << 20);
}

TEST_P(Examples, Manifest) {
    auto files = make(false);
    std::string expected;
    for (std::istringstream text(files.at("manifest.json")); !text.eof();) {
        std::string line;
        if (std::getline(text, line)) expected += "    " + line + "\n";
    }
    std::ifstream in(std::string(FORMATS) + "/manifest.md");
    const std::string page(std::istreambuf_iterator<char>(in), {});
    EXPECT_NE(page.find("    # manifest.json\n" + expected), std::string::npos)
        << "manifest.md does not show\n"
        << expected;
    std::string marker;
    for (std::istringstream text(files.at(".fermata")); !text.eof();) {
        std::string line;
        if (std::getline(text, line)) marker += "    " + line + "\n";
    }
    EXPECT_NE(page.find("    # .fermata\n" + marker), std::string::npos) << "manifest.md does not show\n"
                                                                         << marker;
}

}  // namespace
}  // namespace fermata::store
