// What becomes of srun's words, and of those for `fermata run` in --fermata-options.
#include "spank/line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "launch/launcher_options.h"

namespace fermata {
namespace {

using Words = std::vector<std::string>;

struct Made {
    Words words;
    std::string error;
};

std::vector<char*> pointers(Words& words) {
    std::vector<char*> all;
    for (std::string& word : words) all.push_back(word.data());
    all.push_back(nullptr);
    return all;
}

Made line_of(Words srun, Words program, const char* options = nullptr) {
    srun.insert(srun.begin(), "srun");
    const size_t first = srun.size();
    srun.insert(srun.end(), program.begin(), program.end());
    std::vector<char*> words = pointers(srun);
    fermata_line line = fermata_make_line("F", "D", options, words.data(), first);
    Made made{{line.words, line.words + line.count}, line.error};
    fermata_free(&line);
    return made;
}

const char* why_not(Words words, size_t program) { return fermata_why_not(pointers(words).data(), program); }

std::map<std::string, std::string> variables;
const char* variable(const char* name) {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
}

std::string directory_of(const char* pattern) {
    char error[512];
    char* made = fermata_directory(pattern, variable, error);
    std::string text = made ? made : std::string("error: ") + error;
    std::free(made);
    return text;
}

TEST(SpankLine, StandsInThePlaceOfSruns) {
    EXPECT_EQ(line_of({}, {"./a"}).words,
              (Words{"F", "run", "--launcher", "srun", "--continue", "--max-restarts", "10", "--interval",
                     "auto", "--ckpt-dir", "D", "--", "./a"}));
    EXPECT_EQ(line_of({"-n", "4", "--fermata=x", "--comment=it's"}, {"./a", "-n", "", "--fermata=y"},
                      "-v --mpi 'a b'")
                  .words,
              (Words{"F",          "run",        "--launcher",
                     "srun",       "--continue", "--max-restarts",
                     "10",         "-v",         "--mpi",
                     "a b",        "--interval", "auto",
                     "--ckpt-dir", "D",          "--srun-args='-n' '4' '--comment=it'\\''s'",
                     "--",         "./a",        "-n",
                     "",           "--fermata=y"}));
}

TEST(SpankLine, HasNoneOfThePluginsOptions) {
    for (const Words& given : {Words{"--fermata=x"}, Words{"--fermata", "x"}, Words{"--fermata-options=-v"},
                               Words{"--fermata-o", "-v"}, Words{"--fe", "x"}, Words{"--"}})
        EXPECT_EQ(line_of(given, {"a"}).words, line_of({}, {"a"}).words) << given[0];
    EXPECT_NE(line_of({"--fermatas"}, {"a"}).words, line_of({}, {"a"}).words);
}

TEST(SpankLine, UsersWordsCountForItsOwn) {
    for (const char* own : {"--interval 5m", "--interval=5m", "--levels 'memory 5s'", "--own-state"}) {
        const Words words = line_of({}, {"a"}, own).words;
        EXPECT_EQ(std::count(words.begin(), words.end(), "auto"), 0) << own;
    }
}

TEST(SpankLine, RefusesWhatIsNotItsToSay) {
    EXPECT_NE(line_of({}, {"a", ":", "-n1", "b"}).error, "");
    EXPECT_NE(line_of({}, {"a"}, "--launcher own").error, "");
    EXPECT_NE(line_of({}, {"a"}, "-- ./b").error, "");
    EXPECT_NE(line_of({}, {"a"}, "--mpi 'x").error, "");
    EXPECT_EQ(line_of({}, {"a", "::"}, "--mpi '-- : x'").error, "");
}

TEST(SpankLine, LeavesShellsAndDaemonsToSrun) {
    EXPECT_EQ(why_not({"srun", "-n", "2", "a", "--pty"}, 3), nullptr);
    EXPECT_NE(why_not({"srun", "--pty", "bash"}, 2), nullptr);
    EXPECT_NE(why_not({"srun", "--interactive", "bash"}, 2), nullptr);
    EXPECT_NE(why_not({"srun", "-N2", "/usr/bin/orted", "-mca"}, 2), nullptr);
    EXPECT_NE(why_not({"srun", "hydra_bstrap_proxy"}, 1), nullptr);
    EXPECT_EQ(why_not({"srun", "./my_orted"}, 1), nullptr);
}

TEST(SpankLine, PutsTheJobsNumberIntoTheDirectory) {
    variables = {{"SLURM_JOB_ID", "17"}, {"SLURM_JOB_NAME", "%j"}};
    EXPECT_EQ(directory_of("/a/ck-%j.%A/%x%%"), "/a/ck-17.17/%j%");
    variables["SLURM_ARRAY_JOB_ID"] = "12";
    variables["SLURM_ARRAY_TASK_ID"] = "3";
    EXPECT_EQ(directory_of("%A_%a"), "12_3");
    variables.clear();
    for (const char* wrong : {"ck-%j", "%a", "%z", "100%"})
        EXPECT_EQ(directory_of(wrong).substr(0, 7), "error: ") << wrong;
    EXPECT_EQ(directory_of("plain"), "plain");
}

// Both ends split words alike.
TEST(SpankLine, SplitsAsFermataDoes) {
    std::mt19937 random(7);
    const std::string letters = "ab \t'\"\\-=";
    int refused = 0;
    for (int round = 0; round < 5000; ++round) {
        std::string text;
        for (size_t i = random() % 12; i > 0; --i) text += letters[random() % letters.size()];
        std::optional<Words> wanted;
        try {
            wanted = launch::split_words(text);
        } catch (const Error&) {
        }
        Made made = line_of({"-J", text}, {"a"}, text.c_str());
        if (wanted && std::count(wanted->begin(), wanted->end(), "--")) continue;
        ASSERT_EQ(made.error.empty(), wanted.has_value()) << text;
        refused += !wanted;
        if (!wanted) continue;
        ASSERT_EQ(
            Words(made.words.begin() + 7, made.words.begin() + 7 + static_cast<ptrdiff_t>(wanted->size())),
            *wanted)
            << text;
        const std::string args = made.words[made.words.size() - 3];
        ASSERT_EQ(launch::split_words(args.substr(args.find('=') + 1)), (Words{"-J", text}));
    }
    EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace fermata
