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
    book.also_in(g(2), LevelName::files);
    EXPECT_FALSE(book.base_at(LevelName::files));  // what it needs is not there
    book.also_in(g(1), LevelName::files);
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
    EXPECT_EQ(book.to_copy(g(3), LevelName::files), gs({1, 2, 3}));
    book.also_in(g(1), LevelName::files);
    EXPECT_EQ(book.to_copy(g(3), LevelName::files), gs({2, 3}));
    // Retention has removed it from files again.
    book.only_in(LevelName::files, {});
    EXPECT_EQ(book.to_copy(g(3), LevelName::files), gs({1, 2, 3}));
    book.keep(Medium::memory, gs({2, 3}));
    EXPECT_TRUE(book.to_copy(g(3), LevelName::files).empty());  // it cannot be whole
    book.also_in(g(2), LevelName::files);
    EXPECT_TRUE(book.to_copy(g(2), LevelName::files).empty());  // it is there
    EXPECT_TRUE(book.to_copy(g(9), LevelName::files).empty());
}

TEST(Book, TheNewestWithBuddiesStaysUntilANewerOneHasSome) {
    Book book;
    book.committed(g(1), LevelName::memory, {});
    EXPECT_EQ(book.to_copy_from_memory(g(1), kBuddies), gs({1}));
    book.also_in(g(1), kBuddies);
    EXPECT_TRUE(book.to_copy_from_memory(g(1), kBuddies).empty());
    book.committed(g(2), LevelName::memory, {1});
    book.committed(g(3), LevelName::memory, {});
    EXPECT_EQ(book.to_keep(Medium::memory, {}), gs({1, 3}));
    EXPECT_EQ(book.to_keep(Medium::memory, {g(2)}), gs({1, 2, 3}));
    EXPECT_EQ(book.to_copy_from_memory(g(2), kBuddies), gs({2}));  // what it needs is there
    book.keep(Medium::memory, gs({1, 3}));
    book.also_in(g(3), kBuddies);
    EXPECT_EQ(book.newest_in(kBuddies), g(3));
    EXPECT_EQ(book.to_keep(Medium::memory, {}), gs({3}));
    book.committed(g(4), LevelName::memory, {});
    EXPECT_EQ(book.to_keep(Medium::memory, {}), gs({3, 4}));
    // A newer one in files is better than an older one with buddies.
    book.also_in(g(4), LevelName::files);
    EXPECT_EQ(book.to_keep(Medium::memory, {}), gs({4}));
    book.keep(Medium::memory, gs({4}));
    EXPECT_FALSE(book.newest_in(kBuddies));
    book.also_in(g(9), kBuddies);
    EXPECT_FALSE(book.has(g(9), kBuddies));
}

TEST(Book, WhatGoesToBuddiesBringsWhatItNeeds) {
    Book book;
    book.committed(g(1), LevelName::memory, {});
    book.committed(g(2), LevelName::memory, {1});
    EXPECT_EQ(book.to_copy_from_memory(g(2), kBuddies), gs({1, 2}));
    book.keep(Medium::memory, gs({2}));
    EXPECT_TRUE(book.to_copy_from_memory(g(2), kBuddies).empty());  // it cannot be whole
}

TEST(Book, TheNewestWithParityStaysUntilFilesHaveANewerOne) {
    Book book;
    book.committed(g(1), LevelName::memory, {});
    book.committed(g(2), LevelName::memory, {1});
    EXPECT_EQ(book.to_copy_from_memory(g(2), kParity), gs({1, 2}));
    book.also_in(g(1), kParity);
    EXPECT_EQ(book.to_copy_from_memory(g(2), kParity), gs({2}));
    book.also_in(g(2), kParity);
    EXPECT_TRUE(book.to_copy_from_memory(g(2), kParity).empty());
    book.committed(g(3), LevelName::memory, {});
    EXPECT_EQ(book.newest_in(kParity), g(2));
    EXPECT_EQ(book.to_keep(Medium::memory, {}), gs({1, 2, 3}));
    book.committed(g(4), LevelName::files, {});
    EXPECT_EQ(book.to_keep(Medium::memory, {}), gs({3}));
    book.keep(Medium::memory, gs({3}));
    EXPECT_FALSE(book.has(g(2), kParity));
    EXPECT_FALSE(book.newest_in(kParity));
}

TEST(Book, TheNewestInLocalDirectoriesStaysUntilThereIsANewerOne) {
    Book book;
    book.committed(g(1), LevelName::memory, {});
    book.committed(g(2), LevelName::memory, {1});
    EXPECT_EQ(book.to_copy_from_memory(g(2), LevelName::local), gs({1, 2}));
    book.also_in(g(1), LevelName::local);
    EXPECT_EQ(book.to_copy_from_memory(g(2), LevelName::local), gs({2}));
    book.also_in(g(2), LevelName::local);
    EXPECT_TRUE(book.to_copy_from_memory(g(2), LevelName::local).empty());
    EXPECT_EQ(book.medium_of(g(2)), Medium::memory);
    book.committed(g(3), LevelName::memory, {});
    book.keep(Medium::memory, book.to_keep(Medium::memory, {}));
    EXPECT_FALSE(book.has(g(2), LevelName::memory));
    EXPECT_EQ(book.medium_of(g(2)), Medium::local);
    EXPECT_EQ(book.to_keep(Medium::local, {}), gs({1, 2}));
    EXPECT_EQ(book.newest_on_nodes(), g(3));
    EXPECT_TRUE(book.to_copy_from_memory(g(2), LevelName::local).empty());  // it is there
    book.also_in(g(3), LevelName::local);
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
    EXPECT_EQ(book.to_copy(g(2), LevelName::files), gs({1, 2}));
    EXPECT_TRUE(book.to_copy_from_memory(g(2), LevelName::local).empty() &&
                book.to_copy_from_memory(g(2), kBuddies).empty() &&
                book.to_copy_from_memory(g(2), kParity).empty());
    book.also_in(g(1), LevelName::files);
    book.also_in(g(2), LevelName::files);
    EXPECT_EQ(book.to_keep(Medium::local, {}), gs({1, 2}));
    EXPECT_TRUE(book.to_keep(Medium::memory, {}).empty());
    // Of a life before, which this one, gone on from files, has not removed yet.
    Book next;
    next.committed(g(7), LevelName::files, {});
    next.left_in(g(5), LevelName::local, {4});
    next.left_in(g(4), LevelName::local, {});
    EXPECT_EQ(next.to_keep(Medium::local, {}), gs({4, 5}));
    EXPECT_EQ(next.newest(), g(7));
}

// A level that the book does not know: it has a name, and no more.
TEST(Book, AFurtherPlaceNeedsNoCode) {
    const Where further("nfs:/scratch");
    Book book;
    book.committed(g(1), LevelName::memory, {});
    book.committed(g(2), LevelName::memory, {1});
    EXPECT_EQ(book.to_copy(g(2), further), gs({1, 2}));
    book.also_in(g(1), further);
    EXPECT_EQ(book.to_copy(g(2), further), gs({2}));
    EXPECT_FALSE(book.has(g(1), Where("nfs:/other")));
    book.keep(Medium::memory, gs({2}));
    EXPECT_EQ(book.newest_in(further), g(1));  // a copy there does not go with memory
    book.only_in(further, {});
    EXPECT_FALSE(book.newest_in(further));
}

}  // namespace
}  // namespace fermata::level
