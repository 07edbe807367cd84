// Questions and answers as bytes: what is written is read back, and what cannot be is refused.
#include "transfer/frame.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace fermata::transfer {
namespace {

TEST(Frame, WhatIsWrittenIsReadBack) {
    const Head head = read_head(write_head({77, Kind::size}), 77);
    EXPECT_EQ(head.length, 77u);
    EXPECT_EQ(head.kind, Kind::size);
    for (const Question& one : {Question{Kind::read, Generation(7), "rank-000003.img", 1ull << 40, 5},
                                Question{Kind::list, Generation(1), "", 0, 0},
                                Question{Kind::digest, Generation(Generation::kLast), "text-1", 0, 0}})
        EXPECT_EQ(question_of(one.kind, to_bytes(one)), one);
    const std::vector<File> files = {{"a", 0}, {"files/0123456789abcdef0123456789abcdef", 1ull << 50}};
    EXPECT_EQ(files_of(to_bytes(files)), files);
    EXPECT_TRUE(files_of({}).empty());
    EXPECT_EQ(size_of(to_bytes(Size{9, 4})), (Size{9, 4}));
    const Sum sum{9, image::checksum_of("x", 1)};
    EXPECT_EQ(sum_of(to_bytes(sum)), sum);
    EXPECT_EQ(line_of(to_bytes(std::string("a\nb"))), "a\\x0ab");
}

TEST(Frame, NoNameLeadsOutOfTheGeneration) {
    for (const char* name : {"rank-000001.img", "text-0", "files/0123456789abcdef0123456789abcdef"})
        EXPECT_TRUE(may_be_asked_for(name)) << name;
    for (const char* name : {"", ".", "..", ".fermata", "../gen-000001", "a/b", "/etc/passwd", "files/..",
                             "files/", "files/.x", "files/0123456789abcdef0123456789abcdef/x"})
        EXPECT_FALSE(may_be_asked_for(name)) << name;
    EXPECT_FALSE(may_be_asked_for(std::string("a\0b", 3)));
    EXPECT_FALSE(may_be_asked_for(std::string(256, 'a')));
}

TEST(Frame, WhatCannotBeIsRefused) {
    const wire::Bytes head = write_head({77, Kind::data});
    EXPECT_THROW(read_head(head, 76), Error);
    EXPECT_THROW(read_head(View(head).first(7), 100), Error);
    for (size_t at : {4, 5, 6, 7}) {
        wire::Bytes bad = head;
        bad[at] ^= std::byte{0x40};
        EXPECT_THROW(read_head(bad, 100), Error) << at;
    }
    const wire::Bytes good = to_bytes(Question{Kind::read, Generation(7), "a", 0, 1});
    EXPECT_THROW(question_of(Kind::data, good), Error);
    EXPECT_THROW(question_of(Kind::list, good), Error);
    EXPECT_THROW(question_of(Kind::read, to_bytes(Question{Kind::read, Generation(7), "../a", 0, 1})), Error);
    EXPECT_THROW(question_of(Kind::read, to_bytes(Question{Kind::read, Generation(), "a", 0, 1})), Error);
    for (size_t size = 0; size < good.size(); ++size)
        EXPECT_THROW(question_of(Kind::read, View(good).first(size)), Error) << size;
    wire::Bytes longer = good;
    longer.push_back(std::byte{0});
    EXPECT_THROW(question_of(Kind::read, longer), Error);
    EXPECT_THROW(size_of(to_bytes(Size{4, 9})), Error);
    EXPECT_THROW(files_of(to_bytes(std::vector<File>{{"../x", 1}})), Error);
}

}  // namespace
}  // namespace fermata::transfer
