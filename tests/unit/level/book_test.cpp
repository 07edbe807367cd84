// Which generations are where: what may go, what is to be copied, what images may refer to.
#include "level/book.h"

#include <gtest/gtest.h>

namespace fermata::level {
namespace {

using store::LevelName;

Generation g(uint32_t number) { return Generation(number); }
std::vector<Generation> gs(std::initializer_list<uint32_t> numbers) {
    std::vector<Generation> list;
    for (uint32_t number : numbers) list.push_back(g(number));
    return list;
}

TEST(Book, TheNewestInMemoryStaysWithWhatItNeeds) {
    Book book;
    book.committed(g(1), LevelName::memory, {});
    book.committed(g(2), LevelName::memory, {});
    EXPECT_EQ(book.to_keep(Medium::memory, {}), gs({2}));
    book.committed(g(3), LevelName::memory, {2});
    EXPECT_EQ(book.to_keep(Medium::memory, {}), gs({2, 3}));
    EXPECT_EQ(book.to_keep(Medium::memory, {g(1)}), gs({1, 2, 3}));  // it is being copied
    book.keep(Medium::memory, gs({2, 3}));
    EXPECT_FALSE(book.has(g(1), LevelName::memory));
    EXPECT_TRUE(book.has(g(3), LevelName::memory));
    // A newer one in files does not drive it out.
    book.committed(g(4), LevelName::files, {});
    EXPECT_EQ(book.newest(), g(4));
    EXPECT_EQ(book.newest_in(LevelName::memory), g(3));
    EXPECT_EQ(book.to_keep(Medium::memory, {}), gs({2, 3}));
}

TEST(Book, ImagesReferOnlyToWhatIsAtTheirLevel) {
    Book book;
    EXPECT_FALSE(book.base_at(LevelName::memory));
    book.committed(g(1), LevelName::memory, {});
    EXPECT_EQ(book.base_at(LevelName::memory), g(1));
    EXPECT_FALSE(book.base_at(LevelName::files));
    book.committed(g(2), LevelName::memory, {1});
    book.flushed(g(2));
    EXPECT_FALSE(book.base_at(LevelName::files));  // what it needs is not there
    book.flushed(g(1));
    EXPECT_EQ(book.base_at(LevelName::files), g(2));
    book.committed(g(3), LevelName::files, {1, 2});
    EXPECT_FALSE(book.base_at(LevelName::memory));
    EXPECT_EQ(book.base_at(LevelName::files), g(3));
}

TEST(Book, WhatIsCopiedBringsWhatItNeeds) {
    Book book;
    book.committed(g(1), LevelName::memory, {});
    book.committed(g(2), LevelName::memory, {1});
    book.committed(g(3), LevelName::memory, {1, 2});
    EXPECT_EQ(book.to_copy(g(3)), gs({1, 2, 3}));
    book.flushed(g(1));
    EXPECT_EQ(book.to_copy(g(3)), gs({2, 3}));
    // Retention has removed it from files again.
    book.only_in_files({});
    EXPECT_EQ(book.to_copy(g(3)), gs({1, 2, 3}));
    book.keep(Medium::memory, gs({2, 3}));
    EXPECT_TRUE(book.to_copy(g(3)).empty());  // it cannot be whole
    book.flushed(g(2));
    EXPECT_TRUE(book.to_copy(g(2)).empty());  // it is there
    EXPECT_TRUE(book.to_copy(g(9)).empty());
}

TEST(Book, TheNewestWithBuddiesStaysUntilANewerOneHasSome) {
    Book book;
    book.committed(g(1), LevelName::memory, {});
    EXPECT_EQ(book.to_buddies(g(1)), gs({1}));
    book.buddied(g(1));
    EXPECT_TRUE(book.to_buddies(g(1)).empty());
    book.committed(g(2), LevelName::memory, {1});
    book.committed(g(3), LevelName::memory, {});
    EXPECT_EQ(book.to_keep(Medium::memory, {}), gs({1, 3}));
    EXPECT_EQ(book.to_keep(Medium::memory, {g(2)}), gs({1, 2, 3}));
    EXPECT_EQ(book.to_buddies(g(2)), gs({2}));  // what it needs is there
    book.keep(Medium::memory, gs({1, 3}));
    book.buddied(g(3));
    EXPECT_EQ(book.newest_with_buddies(), g(3));
    EXPECT_EQ(book.to_keep(Medium::memory, {}), gs({3}));
    book.committed(g(4), LevelName::memory, {});
    EXPECT_EQ(book.to_keep(Medium::memory, {}), gs({3, 4}));
    // A newer one in files is better than an older one with buddies.
    book.flushed(g(4));
    EXPECT_EQ(book.to_keep(Medium::memory, {}), gs({4}));
    book.keep(Medium::memory, gs({4}));
    EXPECT_FALSE(book.newest_with_buddies());
    book.buddied(g(9));
    EXPECT_FALSE(book.has_buddies(g(9)));
}

TEST(Book, WhatGoesToBuddiesBringsWhatItNeeds) {
    Book book;
    book.committed(g(1), LevelName::memory, {});
    book.committed(g(2), LevelName::memory, {1});
    EXPECT_EQ(book.to_buddies(g(2)), gs({1, 2}));
    book.keep(Medium::memory, gs({2}));
    EXPECT_TRUE(book.to_buddies(g(2)).empty());  // it cannot be whole
}

TEST(Book, TheNewestWithParityStaysUntilFilesHaveANewerOne) {
    Book book;
    book.committed(g(1), LevelName::memory, {});
    book.committed(g(2), LevelName::memory, {1});
    EXPECT_EQ(book.to_encode(g(2)), gs({1, 2}));
    book.encoded(g(1));
    EXPECT_EQ(book.to_encode(g(2)), gs({2}));
    book.encoded(g(2));
    EXPECT_TRUE(book.to_encode(g(2)).empty());
    book.committed(g(3), LevelName::memory, {});
    EXPECT_EQ(book.newest_with_parity(), g(2));
    EXPECT_EQ(book.to_keep(Medium::memory, {}), gs({1, 2, 3}));
    book.committed(g(4), LevelName::files, {});
    EXPECT_EQ(book.to_keep(Medium::memory, {}), gs({3}));
    book.keep(Medium::memory, gs({3}));
    EXPECT_FALSE(book.has_parity(g(2)));
    EXPECT_FALSE(book.newest_with_parity());
}

TEST(Book, TheNewestInLocalDirectoriesStaysUntilThereIsANewerOne) {
    Book book;
    book.committed(g(1), LevelName::memory, {});
    book.committed(g(2), LevelName::memory, {1});
    EXPECT_EQ(book.to_local(g(2)), gs({1, 2}));
    book.localed(g(1));
    EXPECT_EQ(book.to_local(g(2)), gs({2}));
    book.localed(g(2));
    EXPECT_TRUE(book.to_local(g(2)).empty());
    EXPECT_EQ(book.medium_of(g(2)), Medium::memory);
    book.committed(g(3), LevelName::memory, {});
    book.keep(Medium::memory, book.to_keep(Medium::memory, {}));
    EXPECT_FALSE(book.has(g(2), LevelName::memory));
    EXPECT_EQ(book.medium_of(g(2)), Medium::local);
    EXPECT_EQ(book.to_keep(Medium::local, {}), gs({1, 2}));
    EXPECT_EQ(book.newest_on_nodes(), g(3));
    EXPECT_TRUE(book.to_local(g(2)).empty());  // it is there
    book.localed(g(3));
    EXPECT_EQ(book.to_keep(Medium::local, {g(2)}), gs({1, 2, 3}));
    EXPECT_EQ(book.to_keep(Medium::local, {}), gs({3}));
    book.keep(Medium::local, gs({3}));
    EXPECT_EQ(book.newest_in(LevelName::local), g(3));
    EXPECT_FALSE(book.has(g(1), LevelName::local));
}

TEST(Book, WithoutMemoryWhatIsCopiedComesFromLocalDirectories) {
    Book book;
    book.committed(g(1), LevelName::local, {});
    EXPECT_EQ(book.base_at(LevelName::local), g(1));
    EXPECT_FALSE(book.base_at(LevelName::memory));
    book.committed(g(2), LevelName::local, {1});
    EXPECT_EQ(book.medium_of(g(2)), Medium::local);
    EXPECT_EQ(book.to_copy(g(2)), gs({1, 2}));
    EXPECT_TRUE(book.to_local(g(2)).empty() && book.to_buddies(g(2)).empty() && book.to_encode(g(2)).empty());
    book.flushed(g(1));
    book.flushed(g(2));
    EXPECT_EQ(book.to_keep(Medium::local, {}), gs({1, 2}));
    EXPECT_TRUE(book.to_keep(Medium::memory, {}).empty());
    // Of a life before, which this one, gone on from files, has not removed yet.
    Book next;
    next.committed(g(7), LevelName::files, {});
    next.localed(g(5), {4});
    next.localed(g(4));
    EXPECT_EQ(next.to_keep(Medium::local, {}), gs({4, 5}));
    EXPECT_EQ(next.newest(), g(7));
}

}  // namespace
}  // namespace fermata::level
