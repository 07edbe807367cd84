// The formats: what is written is read again, and nothing else is.
#include <fstream>

#include "base/error.h"
#include "image/spare.h"
#include "members.h"
#include "store/remove.h"

namespace fermata::erasure {
namespace {

namespace fs = std::filesystem;
using FilesTest = Members;

TEST_F(FilesTest, ContentsAreAllThatARestartNeeds) {
    make({{100, 2 << 20}, {5}});
    const Contents contents = contents_of(folder(0), kJob, Generation(7), "a");
    std::vector<std::string> names;
    for (const File& file : contents.files) names.push_back(file.name);
    EXPECT_EQ(names, (std::vector<std::string>{kKept, "rank-000000.img", "rank-000001.img"}));
    EXPECT_EQ(contents.bytes(), 777u + 100 + (2 << 20));
    EXPECT_EQ(contents.pieces.size(), 3u);
    EXPECT_EQ(contents.bytes_of_piece(2), 877u);
    EXPECT_EQ(contents.spans(700, 200), (std::vector<Span>{{0, 700, 77}, {1, 0, 100}, {2, 0, 23}}));
    EXPECT_EQ(Contents::parse(contents.to_bytes(), "x"), contents);
}

TEST_F(FilesTest, NamesThatAreNoneOfOursAreRefused) {
    Contents contents{kJob, Generation(7), "a", {}, {}};
    for (const char* name :
         {"../x", "/etc/passwd", "rank-0.img", "manifest.json", "files/../x", "files/abc", ""}) {
        contents.files = {{name, 0}};
        EXPECT_THROW(Contents::parse(contents.to_bytes(), "x"), Error) << name;
    }
    contents.files = {{"rank-000001.img", 0}, {"rank-000000.img", 0}};
    EXPECT_THROW(Contents::parse(contents.to_bytes(), "x"), Error);
    contents.files = {{"rank-000000.img", 5}};  // and no checksum
    EXPECT_THROW(Contents::parse(contents.to_bytes(), "x"), Error);
    contents.files = {{"rank-000000.img", UINT64_MAX}, {"rank-000001.img", 2}};
    EXPECT_THROW(Contents::parse(contents.to_bytes(), "x"), Error);
}

TEST_F(FilesTest, GroupsThatDoNotBelongTogether) {
    Contents a{1, Generation(2), "a", {}, {}}, b{1, Generation(2), "b", {}, {}};
    EXPECT_NO_THROW(Group::of({a, b}, 1));
    EXPECT_THROW(Group::of({a, b}, 2), Error);
    EXPECT_THROW(Group::of({a, a}, 1), Error);
    b.generation = Generation(3);
    EXPECT_THROW(Group::of({a, b}, 1), Error);
    EXPECT_THROW(Group::of({}, 1), Error);
}

TEST_F(FilesTest, EveryFlippedOrMissingByteOfAHeadIsFound) {
    make({{3000, 20}, {1 << 20}, {7}});
    const Group group = this->group(3, 1);
    encode(group);
    const ParityHead head = read_parity_head(folder(1));
    EXPECT_EQ(head.group().name(), group.name());
    EXPECT_EQ(head.member(), Member{1});
    const std::string whole = content(at(1) / kParityFile);
    const size_t size = head.to_bytes().size();
    for (size_t byte = 0; byte < size; ++byte) {
        flip(at(1) / kParityFile, byte);
        EXPECT_THROW(read_parity_head(folder(1)), Error) << byte;
        std::ofstream(at(1) / kParityFile, std::ios::binary) << whole;
    }
    for (size_t length = 0; length < whole.size(); length += length < size + 10 ? 1 : 99991) {
        fs::resize_file(at(1) / kParityFile, length);
        EXPECT_THROW(read_parity_head(folder(1)), Error) << length;
        std::ofstream(at(1) / kParityFile, std::ios::binary) << whole;
    }
    std::ofstream(at(1) / kParityFile, std::ios::binary | std::ios::app) << 'x';
    EXPECT_THROW(read_parity_head(folder(1)), Error);
}

// What retention removes.
TEST_F(FilesTest, ParityOverPagesOfOldParityIsTheSame) {
    make({{3 << 20}, {2 << 20}, {4 << 20}});
    const Group all = group(3, 1);
    std::vector<std::optional<files::Folder>> folders{folder(0), folder(1), folder(2)};
    const auto parity = [&] {
        Folders source(folders);
        write_parity(all, Member{0}, source, folder(0));
        std::ifstream in(at(0) / kParityFile, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), {});
    };
    const std::string wanted = parity();
    for (size_t old : {wanted.size() + 12345, wanted.size() - 12345}) {
        std::filesystem::remove(at(0) / kParityFile);
        std::filesystem::create_directory(root_ / image::kSpareFolder);
        const auto spare = root_ / image::kSpareFolder / kParityFile;
        std::ofstream(spare, std::ios::binary) << std::string(old, 'x');
        EXPECT_EQ(parity(), wanted) << old;
        EXPECT_FALSE(std::filesystem::exists(spare));  // it was used
    }
}

TEST_F(FilesTest, ParityGoesWithItsGeneration) {
    fs::create_directory(root_ / "gen-000007");
    files::Folder generation = files::Folder::at(root_ / "gen-000007");
    store::write_marker(generation, {kJob, 7});
    for (const char* name : {kContentsFile, kParityFile, kUnfinishedParity, kRebuiltFile, "contents.rs.new"})
        std::ofstream(root_ / "gen-000007" / name) << "x";
    EXPECT_TRUE(store::remove_generation(files::Folder::at(root_), "gen-000007", generation));
    EXPECT_FALSE(fs::exists(root_ / "gen-000007"));
}

}  // namespace
}  // namespace fermata::erasure
