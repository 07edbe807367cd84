// The words of `--save-options`: what each means, what is refused, and that the text for the ranks says the
// same.
#include "image/save_options.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace fermata::image {
namespace {

std::string refused(const std::string& words) {
    try {
        SaveOptions::parse(words);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::usage) << words;
        return error.what();
    }
    return "";
}

TEST(SaveOptions, NothingIsTheDefault) {
    SaveOptions plain = SaveOptions::parse("");
    EXPECT_FALSE(plain.forked || plain.trust_memory || plain.refuse_busy || plain.write.layout.together());
    EXPECT_EQ(plain.incremental, Incremental::no);
    EXPECT_EQ(plain.chain, 8u);
    EXPECT_EQ(plain.to_text(), "");
    EXPECT_EQ(SaveOptions::parse(" , ,, ").to_text(), "");
}

TEST(SaveOptions, BlanksAndCommasSeparate) {
    SaveOptions both = SaveOptions::parse("forked,incremental=split  chain=3,\tcompress=zstd:7 io=direct");
    EXPECT_TRUE(both.forked);
    EXPECT_EQ(both.incremental, Incremental::split);
    EXPECT_EQ(both.chain, 3u);
    EXPECT_EQ(both.write.codec, Codec::zstd);
    EXPECT_EQ(both.write.level, 7);
    EXPECT_EQ(both.write.direct, WriteOptions::Direct::yes);
    EXPECT_EQ(both.to_text(), "forked incremental=split chain=3 compress=zstd:7 io=direct");
}

TEST(SaveOptions, TheTextSaysTheSame) {
    for (const std::string text :
         {"forked", "trust-memory", "busy=refuse", "incremental", "incremental=split", "incremental=hashes",
          "chain=1", "compress=lz4", "compress=zstd", "compress=zstd:19", "compress=shuffle-lz4",
          "compress=shuffle-zstd:2", "compress=auto", "io=direct", "io=buffered", "layout=shared",
          "layout=node", "layout=group:16", "threads=64"}) {
        EXPECT_EQ(SaveOptions::parse(text).to_text(), text);
        EXPECT_EQ(SaveOptions::from_text(text).to_text(), text);
        EXPECT_NE(text.find_first_of("=") == text.npos
                      ? save_option_words().find(text)
                      : save_option_words().find(text.substr(0, text.find('='))),
                  std::string::npos);
    }
    SaveOptions with_base = SaveOptions::parse("incremental");
    with_base.base = 41;
    EXPECT_EQ(with_base.to_text(), "incremental base=41");
    EXPECT_EQ(SaveOptions::from_text(with_base.to_text()).base, 41u);
}

TEST(SaveOptions, TheLastOneCounts) {
    EXPECT_EQ(SaveOptions::parse("incremental=hashes incremental").to_text(), "incremental");
    EXPECT_EQ(SaveOptions::parse("compress=zstd:9 compress=zstd").to_text(), "compress=zstd");
    EXPECT_EQ(SaveOptions::parse("compress=auto compress=none layout=shared layout=files").to_text(), "");
}

TEST(SaveOptions, WhatIsNoWordIsRefusedWithTheList) {
    for (const std::string wrong : {"incremantal",
                                    "compres=zstd",
                                    "compress=gzip",
                                    "compress",
                                    "compress=",
                                    "compress=zstd:",
                                    "compress=zstd:x",
                                    "compress=zstd:0",
                                    "compress=zstd:20",
                                    "compress=lz4:3",
                                    "io=fast",
                                    "threads=x",
                                    "threads=0",
                                    "threads=65",
                                    "threads=4x",
                                    "chain=0",
                                    "chain=-1",
                                    "chain=1001",
                                    "busy",
                                    "busy=wait",
                                    "layout=one",
                                    "layout=group",
                                    "layout=group:",
                                    "layout=group:0",
                                    "layout=group:2x",
                                    "layout=group:-1",
                                    "layout=group:10000001",
                                    "forked=1",
                                    "base=1",
                                    "incremental=all",
                                    "FORKED",
                                    "="}) {
        std::string line = refused("forked " + wrong + ",incremental");
        EXPECT_NE(line.find("'" + wrong + "'"), std::string::npos) << wrong << ": " << line;
        EXPECT_NE(line.find(save_option_words()), std::string::npos) << line;
        EXPECT_EQ(line.find('\n'), std::string::npos);
    }
}

}  // namespace
}  // namespace fermata::image
