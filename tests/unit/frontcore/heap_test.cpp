#include "front/core/heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

using namespace fermata::front;

TEST(FrontHeap, BlocksAreAlignedAndKeepWhatIsWritten) {
    for (size_t size : {0, 1, 15, 16, 17, 127, 128, 129, 160, 161, 4096, 65535, 65536, 65537, 1 << 20}) {
        auto* block = static_cast<unsigned char*>(fm_alloc(size));
        ASSERT_NE(block, nullptr);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 16, 0u) << size;
        memset(block, 0xa5, size);
        if (size > 0) {
            EXPECT_EQ(block[size - 1], 0xa5);
        }
        fm_free(block);
    }
}

TEST(FrontHeap, LargeBlocksThatWereFreedAreTakenAgainWhereTheyFit) {
    void* first = fm_alloc(300'000);
    fm_free(first);
    const size_t mapped = fm_heap_use().mapped;
    void* fits = fm_alloc(290'000);
    EXPECT_EQ(fits, first);
    fm_free(fits);
    EXPECT_EQ(fm_heap_use().mapped, mapped);
    void* smaller = fm_alloc(100'000);  // two thirds would be waste
    EXPECT_NE(smaller, first);
    fm_free(smaller);
    const size_t before = fm_heap_use().mapped;
    fm_free(fm_alloc(5 << 20));  // more than is ever kept
    EXPECT_EQ(fm_heap_use().mapped, before);
}

// Random life against a model: no two blocks overlap, contents stay, everything is given back.
TEST(FrontHeap, RandomLife) {
    std::mt19937 random(7);
    struct Block {
        size_t size;
        unsigned char fill;
    };
    std::map<unsigned char*, Block> live;
    HeapUse before = fm_heap_use();
    for (int step = 0; step < 20000; step++) {
        if (live.empty() || random() % 3 != 0) {
            size_t size = random() % 10 == 0 ? random() % 200000 : random() % 700;
            auto* at = static_cast<unsigned char*>(fm_alloc(size));
            auto fill = static_cast<unsigned char>(random());
            memset(at, fill, size);
            auto next = live.lower_bound(at);
            if (next != live.end()) {
                ASSERT_LE(at + size, next->first);
            }
            if (next != live.begin()) {
                auto last = std::prev(next);
                ASSERT_LE(last->first + last->second.size, at);
            }
            live[at] = {size, fill};
        } else {
            auto it =
                std::next(live.begin(), static_cast<long>(random() % std::min<size_t>(live.size(), 50)));
            for (size_t i = 0; i < it->second.size; i += 97) ASSERT_EQ(it->first[i], it->second.fill);
            fm_free(it->first);
            live.erase(it);
        }
    }
    for (auto& [at, block] : live) fm_free(at);
    HeapUse after = fm_heap_use();
    EXPECT_EQ(after.blocks, before.blocks);
    EXPECT_EQ(after.allocated, before.allocated);
}

TEST(FrontHeap, MemoryIsReused) {
    for (int i = 0; i < 1000; i++) fm_free(fm_alloc(100));
    size_t mapped = fm_heap_use().mapped;
    for (int i = 0; i < 100000; i++) fm_free(fm_alloc(100));
    EXPECT_EQ(fm_heap_use().mapped, mapped);
}

TEST(FrontHeap, ReallocKeepsContents) {
    auto* text = static_cast<char*>(fm_alloc(8));
    strcpy(text, "fermata");
    for (size_t size = 16; size < 300000; size *= 2) text = static_cast<char*>(fm_realloc(text, size));
    EXPECT_STREQ(text, "fermata");
    fm_free(text);
}

TEST(FrontHeap, ManyThreads) {
    HeapUse before = fm_heap_use();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([t] {
            std::mt19937 random(static_cast<unsigned>(t));
            std::vector<unsigned char*> mine;
            for (int i = 0; i < 5000; i++) {
                auto* block = static_cast<unsigned char*>(fm_alloc(64));
                memset(block, t, 64);
                mine.push_back(block);
                if (random() % 2 == 0) {
                    for (int k = 0; k < 64; k++) ASSERT_EQ(mine.back()[k], t);
                    fm_free(mine.back());
                    mine.pop_back();
                }
            }
            for (auto* block : mine) fm_free(block);
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(fm_heap_use().blocks, before.blocks);
}

TEST(FrontHeapDeath, DoubleFreeIsNoticed) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            void* block = fm_alloc(32);
            fm_free(block);
            fm_free(block);
        },
        "doubly freed");
}
