// What VeloC's interface saves and is configured by: bytes and lines of somebody else's.
#include <gtest/gtest.h>

#include "api/veloc_blob.h"
#include "api/veloc_words.h"
#include "base/error.h"

namespace fermata::api {
namespace {

VelocBlob some_blob() {
    VelocBlob blob;
    blob.regions = {{-3, "abc"}, {0, ""}, {7, std::string(100, '\x7')}};
    blob.files = {{"one.dat", "content"}, {"two", ""}};
    return blob;
}

std::string bytes_of(const VelocBlob& blob) {
    std::string bytes(blob.size(), '?');
    blob.pack(bytes.data());
    return bytes;
}

TEST(VelocBlob, ComesBackAsItWas) {
    const std::string bytes = bytes_of(some_blob());
    const VelocBlob again = VelocBlob::unpacked(bytes.data(), bytes.size());
    EXPECT_EQ(again.regions, some_blob().regions);
    EXPECT_EQ(again.files, some_blob().files);
    EXPECT_EQ(bytes_of(again), bytes);
}

TEST(VelocBlob, EveryCutIsRefusedAndEveryFlippedBitIsReadOrRefused) {
    const std::string bytes = bytes_of(some_blob());
    for (size_t size = 0; size < bytes.size(); ++size)
        EXPECT_THROW(VelocBlob::unpacked(bytes.data(), size), Error) << size;
    const std::string more = bytes + "x";
    EXPECT_THROW(VelocBlob::unpacked(more.data(), more.size()), Error);
    for (size_t at = 0; at < bytes.size(); ++at)
        for (int bit = 0; bit < 8; ++bit) {
            std::string changed = bytes;
            changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
            try {
                const VelocBlob blob = VelocBlob::unpacked(changed.data(), changed.size());
                EXPECT_EQ(blob.size(), bytes.size());
            } catch (const Error&) {
            }
        }
}

TEST(VelocWords, LinesAreKeysAndValues) {
    const VelocWords words = parse_veloc_words(
        "# said\n[veloc]\n scratch = /a b \r\npersistent=/p\nmode = async\nmax_versions = 3\nchksum = "
        "true\nfermata = "
        "memory=node,flush=2\nwhat = 1",
        "cfg");
    EXPECT_EQ(words.scratch, "/a b");
    EXPECT_EQ(words.persistent, "/p");
    EXPECT_EQ(words.versions, 3u);
    EXPECT_EQ(words.options, "memory=node,flush=2");
    ASSERT_EQ(words.unknown.size(), 1u);
    EXPECT_EQ(words.unknown[0], "cfg:9: 'what = 1'");
}

TEST(VelocWords, WhatCannotBeIsNamed) {
    for (const char* text :
         {"", "scratch = a", "persistent = b\nscratch =", "scratch a",
          "scratch = a\npersistent = b\nmax_versions = x", "scratch = a\npersistent = b\nmax_versions = -1"})
        EXPECT_THROW(parse_veloc_words(text, "cfg"), Error) << text;
}

}  // namespace
}  // namespace fermata::api
