// An array of three dimensions, divided in any way among any number of ranks, comes back on any other number
// divided in any other way; an element that nobody saved is missed; what is in memory alone is not lost.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <random>
#include <string>
#include <utility>

#include "fermata/fermata_core.h"
#include "ranks_in_threads.h"

namespace fermata::api {
namespace {

using Numbers = std::vector<int64_t>;
using Draw = std::mt19937;

int64_t below(Draw& draw, int64_t n) { return static_cast<int64_t>(draw()) % n; }

struct Box {
    Numbers offset, extent, stride;
    std::vector<double> data{};
    int64_t elements() const { return extent[0] * extent[1] * extent[2]; }
};
using Division = std::vector<std::vector<Box>>;  // by rank

double value_of(const Box& box, int64_t i, int64_t j, int64_t k) {
    return 1e6 * static_cast<double>(box.offset[0] + i * box.stride[0]) +
           1e3 * static_cast<double>(box.offset[1] + j * box.stride[1]) +
           static_cast<double>(box.offset[2] + k * box.stride[2]) + 0.25;
}

template <class What>
void for_each_element(Box& box, What what) {
    size_t at = 0;
    for (int64_t i = 0; i < box.extent[0]; ++i)
        for (int64_t j = 0; j < box.extent[1]; ++j)
            for (int64_t k = 0; k < box.extent[2]; ++k) what(box.data[at++], value_of(box, i, j, k));
}

// Along one dimension: blocks, or every parts-th element.
std::vector<Box> cut(const Box& whole, size_t d, int64_t parts, bool cyclic) {
    std::vector<Box> all;
    for (int64_t p = 0; p < parts; ++p) {
        Box one = whole;
        const int64_t n = whole.extent[d], first = n * p / parts;
        one.offset[d] += (cyclic ? p : first) * whole.stride[d];
        one.extent[d] = cyclic ? (p < n ? (n - p + parts - 1) / parts : 0) : n * (p + 1) / parts - first;
        if (cyclic) one.stride[d] *= parts;
        all.push_back(one);
    }
    return all;
}

// Cuts of cuts, blocks and cyclic ones mixed, dealt to the ranks at random; some ranks have none, some boxes
// have ghost cells that are their neighbours'.
Division drawn_boxes(Draw& draw, const Numbers& shape, int ranks) {
    std::vector<Box> all{{{0, 0, 0}, shape, {1, 1, 1}}};
    for (int cuts = static_cast<int>(draw() % 6); cuts > 0; --cuts) {
        size_t which = draw() % all.size();
        Box whole = all[which];
        all.erase(all.begin() + static_cast<long>(which));
        for (Box& one : cut(whole, draw() % 3, 1 + below(draw, 4), draw() % 2 == 0))
            all.push_back(std::move(one));
    }
    Division division(static_cast<size_t>(ranks));
    for (Box& one : all) {
        size_t d = draw() % 3;
        if (draw() % 3 == 0 && one.stride[d] == 1 && one.elements() > 0) {
            int64_t low = std::min(one.offset[d], below(draw, 3)),
                    high = std::min(shape[d] - one.offset[d] - one.extent[d], below(draw, 3));
            one.offset[d] -= low;
            one.extent[d] += low + high;
        }
        division[draw() % division.size()].push_back(std::move(one));
    }
    return division;
}

Division drawn(Draw& draw, const Numbers& shape, int ranks) {
    const Box whole{{0, 0, 0}, shape, {1, 1, 1}};
    const unsigned how = draw() % 4;
    if (how >= 2) return drawn_boxes(draw, shape, ranks);
    Division division;
    for (Box& one : cut(whole, draw() % 3, ranks, how == 1)) division.push_back({std::move(one)});
    return division;
}

struct Turn {
    std::string directory, options;
    Numbers shape;
    bool hole;  // an element is in no box that is saved
};

// One rank's part; what it says is "" when all went well.
std::string one_rank(const fermata_mpi& mpi, std::vector<Box>& mine, const Turn& turn, bool saving) {
    fermata_handle* f = nullptr;
    std::string said;
    auto check = [&](int code) {
        if (code != FERMATA_OK && said.empty()) said = std::to_string(code) + " " + fermata_message(f);
    };
    check(fermata_open_with(&f, &mpi, turn.directory.c_str(), turn.options.c_str()));
    const Numbers none(3);
    check(fermata_protect_array(f, "psi", nullptr, FERMATA_DOUBLE, 3, turn.shape.data(), none.data(),
                                none.data(), nullptr));
    for (Box& box : mine) {
        box.data.assign(static_cast<size_t>(box.elements()) + 1, -1);
        if (saving) for_each_element(box, [](double& element, double value) { element = value; });
        check(fermata_add_part(f, "psi", box.data.data(), box.offset.data(), box.extent.data(),
                               box.stride.data()));
    }
    double time = saving ? 0.125 : 0;
    check(fermata_protect_global(f, "time", &time, FERMATA_DOUBLE, 1));
    int64_t step = 0;
    if (saving) {
        check(fermata_save(f, 41));
        for (Box& box : mine) std::fill(box.data.begin(), box.data.end(), -2);  // it was copied
    } else {
        check(fermata_restore(f, &step));
        if (said.empty()) {
            int wrong = step != 41 || time != 0.125;
            for (Box& box : mine)
                for_each_element(box, [&](double element, double value) { wrong += element != value; });
            if (wrong) said = std::to_string(wrong) + " wrong";
        }
    }
    check(fermata_close(f));
    return said;
}

std::string all_ranks(Division& division, const Turn& turn, bool saving) {
    std::mutex lock;
    std::string said;
    RanksInThreads::run(static_cast<int>(division.size()), [&](int rank, const fermata_mpi& mpi) {
        std::string mine = one_rank(mpi, division[static_cast<size_t>(rank)], turn, saving);
        std::lock_guard guard(lock);
        if (!mine.empty()) said = "rank " + std::to_string(rank) + ": " + mine;
    });
    return said;
}

class Distributions : public testing::Test {
  protected:
    void SetUp() override {
        std::string name =
            std::filesystem::exists("/dev/shm") ? "/dev/shm/fermata-unit-XXXXXX" : "/tmp/fermata-unit-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        root_ = name;
        ::setenv("FERMATA_MEMORY_DIR", (name + "/memory").c_str(), 1);
        std::filesystem::create_directory(name + "/memory");
    }
    void TearDown() override { std::filesystem::remove_all(root_); }
    std::string root_;
};

TEST_F(Distributions, ComeBackOnAnyRanksDividedInAnyWay) {
    const char* seed = ::getenv("API_SEED");
    const char* rounds = ::getenv("API_ROUNDS");
    Draw draw(seed ? static_cast<unsigned>(std::atoi(seed)) : 1);
    int holes = 0;
    for (int round = 0; round < (rounds ? std::atoi(rounds) : 60); ++round) {
        SCOPED_TRACE(round);
        const std::vector<std::string> options = {"",
                                                  "layout=shared",
                                                  "compress=zstd",
                                                  "memory=node,flush=0",
                                                  "threads=2,layout=shared,compress=lz4",
                                                  "layout=node",
                                                  "layout=group:2,compress=lz4"};
        Turn turn{root_ + "/s" + std::to_string(round),
                  options[draw() % options.size()],
                  {1 + below(draw, 14), 1 + below(draw, 14), 1 + below(draw, 14)},
                  false};
        Division saved = drawn(draw, turn.shape, 1 + static_cast<int>(draw() % 6)), whole = saved;
        Division wanted = drawn(draw, turn.shape, 1 + static_cast<int>(draw() % 8));
        if (draw() % 6 == 0) {
            // The corner is in nobody's box: whoever wants it is told.
            for (auto& boxes : saved)
                std::erase_if(boxes, [](const Box& box) {
                    return box.elements() > 0 && box.offset == Numbers{0, 0, 0};
                });
            turn.hole = true;
            ++holes;
        }
        ASSERT_EQ(all_ranks(saved, turn, true), "");
        const std::string said = all_ranks(wanted, turn, false);
        if (turn.hole)
            ASSERT_NE(said.find(": 3 "), std::string::npos) << said;
        else
            ASSERT_EQ(said, "");
        std::filesystem::remove_all(turn.directory);
    }
    EXPECT_GT(holes, 0);
}

// One rank with x = 7 in memory alone, whose process ends without closing.
void save_and_die(const std::string& directory) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        RanksInThreads::run(1, [&](int, const fermata_mpi& mpi) {
            fermata_handle* f = nullptr;
            double x = 7;
            int bad = fermata_open_with(&f, &mpi, directory.c_str(), "memory=node,flush=0");
            bad |= fermata_protect_global(f, "x", &x, FERMATA_DOUBLE, 1);
            ::_exit(bad | fermata_save(f, 3));
        });
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
}

// What a restore of `name` answers, and the close behind it.
std::pair<int, int> look(const std::string& directory, const char* name, double& x) {
    std::pair<int, int> codes;
    RanksInThreads::run(1, [&](int, const fermata_mpi& mpi) {
        fermata_handle* f = nullptr;
        int64_t step = 0;
        int bad = fermata_open_with(&f, &mpi, directory.c_str(), "memory=node,flush=0");
        if (name) {
            bad |= fermata_protect_global(f, name, &x, FERMATA_DOUBLE, 1);
            codes.first = fermata_restore(f, &step) | bad;
        }
        codes.second = fermata_close(f);
    });
    return codes;
}

TEST_F(Distributions, WhoCannotRestoreWhatIsInMemoryAloneLeavesIt) {
    const std::string directory = root_ + "/s";
    save_and_die(directory);
    double x = 0;
    EXPECT_EQ(look(directory, nullptr, x), std::pair(FERMATA_OK + 0, FERMATA_OK + 0));
    EXPECT_EQ(look(directory, "y", x), std::pair(FERMATA_MISMATCH + 0, FERMATA_OK + 0));
    EXPECT_EQ(x, 0);
    EXPECT_EQ(look(directory, "x", x), std::pair(FERMATA_OK + 0, FERMATA_OK + 0));
    EXPECT_EQ(x, 7);
}

TEST_F(Distributions, WhatWasInMemoryAloneAndIsGoneIsSaid) {
    const std::string directory = root_ + "/s";
    save_and_die(directory);
    for (auto& entry : std::filesystem::recursive_directory_iterator(root_ + "/memory"))
        if (entry.path().extension() == ".img") std::filesystem::resize_file(entry.path(), 100);
    double x = 0;
    EXPECT_EQ(look(directory, "x", x), std::pair(FERMATA_DAMAGED + 0, FERMATA_OK + 0));
    EXPECT_EQ(x, 0);
}

TEST_F(Distributions, AFailedCopyToFilesIsMadeAgainBeforeMemoryIsCleared) {
    const std::string directory = root_ + "/s", obstacle = directory + "/gen-000002";
    double x = 6;
    RanksInThreads::run(1, [&](int, const fermata_mpi& mpi) {
        fermata_handle* f = nullptr;
        EXPECT_EQ(fermata_open_with(&f, &mpi, directory.c_str(), "memory=node,flush=1"), FERMATA_OK);
        EXPECT_EQ(fermata_protect_global(f, "x", &x, FERMATA_DOUBLE, 1), FERMATA_OK);
        EXPECT_EQ(fermata_save(f, 2) | fermata_wait(f), FERMATA_OK);
        std::filesystem::create_directory(obstacle);  // not Fermata's: the copy to files cannot be made
        x = 7;
        EXPECT_NE(fermata_save(f, 3) | fermata_wait(f), FERMATA_OK);
        std::filesystem::remove(obstacle);
        EXPECT_EQ(fermata_close(f), FERMATA_OK) << fermata_message(nullptr);
    });
    x = 0;
    EXPECT_EQ(look(directory, "x", x), std::pair(FERMATA_OK + 0, FERMATA_OK + 0));
    EXPECT_EQ(x, 7);
}

}  // namespace
}  // namespace fermata::api
