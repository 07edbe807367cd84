// Accesses kept by build-id: what is in the book is taken from there, and only when it is true for what is
// mapped.
#include "split/thread_pointer/code_book.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace fermata::split::thread_pointer {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void put(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

struct Find {
    std::string name;
    std::vector<MappedObject> found;
};

int compare(dl_phdr_info* info, size_t, void* result) {
    auto* find = static_cast<Find*>(result);
    if (find->name == info->dlpi_name) find->found.emplace_back(*info);
    return 0;
}

class Book : public testing::Test {
  protected:
    void SetUp() override {
        directory_ = (fs::temp_directory_path() / "fermata-book-XXXXXX").string();
        ASSERT_NE(mkdtemp(directory_.data()), nullptr);
        library_ = directory_ + "/liblarge.so";
        fs::copy_file(LIBRARIES "/liblarge.so", library_);
        load();
        wanted_ = find_accesses(object());
        ASSERT_EQ(wanted_.doubt, "");
        ASSERT_GT(wanted_.prefixes.size(), 1u);
        ASSERT_EQ(object().build_id.size(), 40u);
    }
    void TearDown() override {
        dlclose(handle_);
        fs::remove_all(directory_);
    }
    void load() {
        handle_ = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(handle_, nullptr) << dlerror();
        Find find{library_, {}};
        dl_iterate_phdr(compare, &find);
        ASSERT_EQ(find.found.size(), 1u);
        object_ = find.found;
    }

    const MappedObject& object() const { return object_.front(); }
    std::vector<uint64_t> taken() const { return CodeBook(directory_).accesses_of(object()).prefixes; }
    fs::path file() const { return fs::path(directory_) / ".code" / object().build_id; }

    // A file that is right but for its last access, which tells whether it was believed.
    CodeHead head_in_file() const {
        CodeHead head;
        const std::string bytes = content(file());
        EXPECT_GE(bytes.size(), sizeof head);
        std::memcpy(static_cast<void*>(&head), bytes.data(), sizeof head);
        return head;
    }
    Prefixes all_but_one() const {
        Prefixes prefixes;
        for (uint64_t at : wanted_.prefixes) prefixes.push_back(static_cast<uint32_t>(at - object().base));
        prefixes.pop_back();
        return prefixes;
    }
    void plant(const CodeHead& head) { put(file(), bytes_of(head, all_but_one())); }
    bool believed() const {
        const std::vector<uint64_t> got = taken();
        if (got == wanted_.prefixes) return false;
        EXPECT_EQ(got.size(), wanted_.prefixes.size() - 1);
        return true;
    }

    std::string directory_, library_;
    void* handle_ = nullptr;
    std::vector<MappedObject> object_;
    Accesses wanted_;
};

TEST_F(Book, IsFilledAndRead) {
    EXPECT_EQ(taken(), wanted_.prefixes);
    ASSERT_TRUE(fs::exists(file()));
    EXPECT_EQ(taken(), wanted_.prefixes);
    plant(head_in_file());
    EXPECT_TRUE(believed());
}

TEST_F(Book, AnotherDecoderIsNotBelieved) {
    taken();
    CodeHead head = head_in_file();
    head.decoder[3] ^= 1;
    plant(head);
    EXPECT_FALSE(believed());
    // What was decoded anew has taken its place.
    head.decoder[3] ^= 1;
    EXPECT_EQ(head_in_file(), head);
}

TEST_F(Book, AChangedFileIsDecodedAnew) {
    taken();
    plant(head_in_file());
    EXPECT_TRUE(believed());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_EQ(chmod(library_.c_str(), 0700), 0);  // its time of change is another one
    EXPECT_FALSE(believed());
}

TEST_F(Book, CodeThatWasChangedInMemoryIsDecoded) {
    taken();
    plant(head_in_file());
    EXPECT_TRUE(believed());
    auto* page = reinterpret_cast<volatile uint8_t*>(object().extent().begin() & ~uint64_t{4095});
    ASSERT_EQ(mprotect(const_cast<uint8_t*>(page), 4096, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
    page[4095] = page[4095];
    EXPECT_FALSE(believed());
    fs::remove(file());
    taken();
    EXPECT_FALSE(fs::exists(file())) << "noted from changed code";
}

TEST_F(Book, DamageIsDecoded) {
    taken();
    const std::string good = content(file());
    for (size_t at = 0; at < good.size(); at += 5) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 4);
        put(file(), bad);
        ASSERT_EQ(taken(), wanted_.prefixes) << at;
        put(file(), good.substr(0, at));
        ASSERT_EQ(taken(), wanted_.prefixes) << at;
    }
    // Well-formed, and not where an access is.
    CodeHead head = head_in_file();
    Prefixes moved = all_but_one();
    moved.back() += 1;
    put(file(), bytes_of(head, moved));
    EXPECT_EQ(taken(), wanted_.prefixes);
}

TEST_F(Book, OnlyInADirectoryOfOnesOwn) {
    ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
    EXPECT_EQ(taken(), wanted_.prefixes);
    EXPECT_FALSE(fs::exists(file()));
    ASSERT_EQ(chmod(directory_.c_str(), 0700), 0);
    ASSERT_EQ(mkdir((directory_ + "/elsewhere").c_str(), 0700), 0);
    fs::create_directory_symlink(directory_ + "/elsewhere", directory_ + "/.code");
    EXPECT_EQ(taken(), wanted_.prefixes);
    EXPECT_TRUE(fs::is_empty(directory_ + "/elsewhere"));
    EXPECT_EQ(CodeBook("").accesses_of(object()).prefixes, wanted_.prefixes);
    EXPECT_EQ(CodeBook(directory_ + "/nothing").accesses_of(object()).prefixes, wanted_.prefixes);
}

}  // namespace
}  // namespace fermata::split::thread_pointer
