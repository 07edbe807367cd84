// A group as directories of this machine, for the tests: each member has images and some other files.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "erasure/encode.h"
#include "erasure/parity_file.h"
#include "erasure/rebuild.h"
#include "image/image.h"

namespace fermata::erasure {

// A file of the program.
inline const std::string kKept = fmt::format("{}{:032x}", kKeptPrefix, 0xb);

class Members : public testing::Test {
  protected:
    static constexpr uint64_t kJob = 0x1122334455667788;
    void SetUp() override {
        char name[] = "/dev/shm/fermata-erasure-XXXXXX";
        root_ = ::mkdtemp(name);
    }
    void TearDown() override { std::filesystem::remove_all(root_); }

    std::filesystem::path at(size_t member) const { return root_ / (fmt::format("m{}", member)); }
    files::Folder folder(size_t member) const { return files::Folder::at(at(member)); }

    void put(size_t member, const std::string& name, size_t bytes) {
        std::string text(bytes, '\0');
        for (char& c : text) c = static_cast<char>(random_());
        std::filesystem::create_directories((at(member) / name).parent_path());
        std::ofstream(at(member) / name, std::ios::binary) << text;
        wanted_[at(member) / name] = text;
    }
    // `sizes`: by member, of images; some have text and files of the program as well.
    void make(const std::vector<std::vector<size_t>>& sizes) {
        uint32_t rank = 0;
        for (size_t i = 0; i < sizes.size(); ++i) {
            std::filesystem::create_directories(at(i));
            for (size_t bytes : sizes[i]) put(i, image::image_name(Rank(rank++)), bytes);
            if (i % 2) put(i, image::text_name({}), 4096);
            if (i % 3 == 0) put(i, kKept, i % 2 ? 0 : 777);
            std::ofstream(at(i) / ".fermata") << "not covered";
        }
    }
    Group group(size_t members, uint32_t losses) const {
        std::vector<Contents> all;
        for (size_t i = 0; i < members; ++i)
            all.push_back(contents_of(folder(i), kJob, Generation(7), fmt::format("host{}", i)));
        return Group::of(std::move(all), losses);
    }
    Folders all(size_t members, const std::vector<bool>& lost = {}) const {
        std::vector<std::optional<files::Folder>> folders;
        for (size_t i = 0; i < members; ++i)
            folders.push_back(lost.empty() || !lost[i] ? std::optional(folder(i)) : std::nullopt);
        return Folders(std::move(folders));
    }
    void encode(const Group& group) {
        for (uint32_t i = 0; i < group.layout().members(); ++i) {
            Folders source = all(group.layout().members());
            write_parity(group, Member{i}, source, folder(i));
        }
    }
    static std::string content(const std::filesystem::path& path) {
        std::ifstream in(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void flip(const std::filesystem::path& path, uint64_t at) {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(static_cast<std::streamoff>(at));
        const auto byte = static_cast<char>(file.get() ^ 1 << random_() % 8);
        file.seekp(static_cast<std::streamoff>(at));
        file.put(byte);
    }

    std::filesystem::path root_;
    std::mt19937 random_{5};
    std::map<std::string, std::string> wanted_;  // what was put, by path
};

}  // namespace fermata::erasure
