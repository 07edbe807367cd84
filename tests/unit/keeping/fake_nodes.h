// Nodes without daemons: they are there or not, and what they are told is kept.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "keeping/account/means.h"
#include "keeping/account/round.h"

namespace fermata::keeping {

struct FakeNodes : Nodes {
    std::set<std::string> hosts() const override { return there; }
    std::set<std::string> hosts_with_ranks() const override { return there; }
    bool whole() const override { return is_whole; }
    void tell(const wire::Message& message) override { told.push_back(message); }
    // All that were told, of one kind.
    template <class M>
    std::vector<M> all() const {
        std::vector<M> found;
        for (const wire::Message& one : told)
            if (auto* m = std::get_if<M>(&one)) found.push_back(*m);
        return found;
    }
    std::set<std::string> there = {"a", "b"};
    bool is_whole = true;
    std::vector<wire::Message> told;
};

// A checkpoint directory that goes with the test.
class Directory {
  public:
    Directory() {
        std::string name = std::filesystem::temp_directory_path() / "fermata-keeping-XXXXXX";
        if (!::mkdtemp(name.data())) throw std::runtime_error("no directory");
        path_ = name;
    }
    ~Directory() { std::filesystem::remove_all(path_); }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

// Three ranks on two nodes, and generations of theirs in memory.
class KeepingTest : public testing::Test {
  protected:
    KeepingTest() { settings_.ckpt_dir = directory_.path(); }

    store::Manifest manifest(Generation generation, const std::vector<uint32_t>& needs = {}) const {
        store::Manifest manifest;
        manifest.job = settings_.job_number;
        manifest.generation = generation.number();
        manifest.level = store::LevelName::memory;
        for (uint32_t rank : {0u, 1u, 2u}) manifest.images.push_back({Rank(rank), "rank", 1 << 30, {}, 0});
        manifest.nodes = {"a", "a", "b"};
        manifest.needs = needs;
        return manifest;
    }
    void note_in(Account& account, const store::Manifest& manifest) const {
        account.book.committed(Generation(manifest.generation), manifest.level, manifest.needs);
        account.newest = manifest;
        account.places = manifest.nodes;
        account.hosts = {"a", "b"};
        account.bytes = manifest.bytes();
        account.addresses = {{"a", "of a"}, {"b", "of b"}, {"c", "of c"}};
    }
    Moment at(int64_t now) const { return {now, nodes_.there, false, false, false}; }

    Directory directory_;
    Settings settings_;
    store::Store store_ = store::Store::for_writing(directory_.path());
    FakeNodes nodes_;
};

}  // namespace fermata::keeping
