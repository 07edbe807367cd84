// The kept corpus of every target, and every byte of its seeds flipped or cut off, sealed and not: a clear
// refusal or the same meaning, never a crash. (A hang is ctest's time limit.)
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "fuzz.h"

namespace fermata::fuzz {
namespace {
namespace fs = std::filesystem;

class Replay : public testing::TestWithParam<const Target*> {
  protected:
    const Target& target = *GetParam();

    // What the run says; a failure with `where` when an oracle breaks.
    void judge(const Bytes& input, const std::string& where) {
        try {
            target.run(input);
        } catch (const std::exception& error) {
            ADD_FAILURE() << target.name << ": " << where << ": " << error.what();
        }
    }
    // Not sealed: refused, or nothing that counts has changed.
    void judge_unsealed(const Bytes& input, const Bytes& meaning, const std::string& where) {
        if (!target.meaning) return judge(input, where);
        try {
            EXPECT_EQ(target.meaning(input), meaning) << target.name << ": another meaning after " << where;
        } catch (const Error&) {
            judge(input, where);
        } catch (const std::exception& error) {
            ADD_FAILURE() << target.name << ": " << where << ": " << error.what();
        }
    }
};

TEST_P(Replay, Corpus) {
    fs::path corpus = fs::path(FUZZ_CORPUS) / target.name;
    size_t files = 0;
    for (const auto& entry : fs::directory_iterator(corpus)) {
        std::ifstream file(entry.path(), std::ios::binary);
        judge(Bytes{std::istreambuf_iterator<char>(file), {}}, entry.path().filename());
        ++files;
    }
    EXPECT_GT(files, 0u) << corpus;
}

// Nobody without the key is let in, whatever he says.
TEST_P(Replay, SeedsAreJudgedRight) {
    Verdict wanted = &target == &handshake ? Verdict::refused : Verdict::accepted;
    for (const Bytes& seed : target.seeds()) EXPECT_EQ(target.run(seed), wanted);
}

// Every bit where the input is short; of long ones every byte of the first 128 and last 1024, and a seeded
// part of the rest.
TEST_P(Replay, FlipsAndTruncations) {
    std::mt19937 random(20261121);
    for (const Bytes& seed : target.seeds()) {
        Bytes meaning;
        if (target.meaning) meaning = target.meaning(seed);
        for (size_t at = 0; at < seed.size(); ++at) {
            bool edge = at < 128 || at + 1024 > seed.size();
            if (!edge && random() % 64) continue;
            for (int bit = 0; bit<8; bit += seed.size()> 2048 ? 1 + static_cast<int>(random() % 7) : 1) {
                Bytes bad = seed;
                bad[at] ^= static_cast<uint8_t>(1 << bit);
                std::string where = "bit " + std::to_string(bit) + " of byte " + std::to_string(at);
                judge_unsealed(bad, meaning, where);
                if (!target.seal) continue;
                target.seal(bad);
                judge(bad, where + ", sealed");
            }
            Bytes cut(seed.begin(), seed.begin() + static_cast<ptrdiff_t>(at));
            judge_unsealed(cut, meaning, "cut to " + std::to_string(at));
            if (!target.seal) continue;
            target.seal(cut);
            judge(cut, "cut to " + std::to_string(at) + ", sealed");
        }
    }
}

// Numbers where numbers are: the values at which arithmetic goes wrong, at every place that may hold one.
TEST_P(Replay, ExtremeNumbers) {
    for (const Bytes& seed : target.seeds())
        for (size_t at = 0; at + 8 <= seed.size();
             at += seed.size() > 8192 && at > 256 && at + 2048 < seed.size() ? 512 : 4)
            for (uint64_t value : {UINT64_MAX, UINT64_MAX - 4095, uint64_t{1} << 63, (uint64_t{1} << 63) - 1,
                                   uint64_t{UINT32_MAX}, uint64_t{0}})
                for (size_t size : {4, 8}) {
                    Bytes bad = seed;
                    std::memcpy(bad.data() + at, &value, size);
                    if (target.seal) target.seal(bad);
                    judge(bad, std::to_string(value) + " at " + std::to_string(at));
                }
}

INSTANTIATE_TEST_SUITE_P(All, Replay, testing::ValuesIn(all_targets()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace fermata::fuzz
