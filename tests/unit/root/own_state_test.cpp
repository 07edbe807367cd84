// Wishes for a save of the program's own state: which word answers which, and what is newest.
#include "root/plan/own_state.h"

#include <gtest/gtest.h>

namespace fermata::root {
namespace {

Request request(const char* origin, bool stop = false) {
    Request one;
    one.origin = origin;
    one.stop = stop;
    return one;
}

wire::OwnState saved(uint64_t answers, uint32_t generation = 3, uint32_t began = 1) {
    return {true, true, false, began, answers, Generation(generation), 41, "/state"};
}

TEST(OwnState, KnowsNothingAtFirst) {
    OwnState own;
    EXPECT_FALSE(own.used() || own.exists() || own.newest() || own.stopping());
    EXPECT_FALSE(own.take_word(0));
    own.heard({}, 0);  // it was opened
    EXPECT_TRUE(own.used());
    EXPECT_FALSE(own.exists());
    EXPECT_EQ(own.what(), "");
}

TEST(OwnState, ASaveIsNewestUntilTheWholeIs) {
    OwnState own;
    own.heard(saved(0), 0);
    EXPECT_TRUE(own.exists() && own.newest() && own.saved());
    EXPECT_EQ(own.what(), "gen-000003 in /state, step 41");
    own.whole_committed(1);
    EXPECT_TRUE(own.exists() && !own.newest());
    own.heard({true, false, false, 1, 0, Generation(3), 41, "/state"}, 0);  // nothing new
    EXPECT_FALSE(own.newest());
    own.heard(saved(0, 4, 2), 0);
    EXPECT_TRUE(own.newest());
}

TEST(OwnState, WordsThatComeLateDoNotMakeASaveNewer) {
    OwnState own;
    own.whole_committed(1);
    own.heard(saved(0, 3, 1), 0);  // it began before the whole
    EXPECT_TRUE(own.exists() && !own.newest());
    own.heard(saved(0, 4, 2), 0);
    EXPECT_TRUE(own.newest());
    own.heard(saved(0, 4, 3), 0);  // it began after the processes of the next one were captured
    own.whole_committed(2);        // which is committed later
    EXPECT_TRUE(own.newest());
    own.whole_committed(3);
    EXPECT_FALSE(own.newest());
}

TEST(OwnState, ASaveOfTheLifeBeforeIsOlderThanTheRestart) {
    OwnState own;
    own.heard(saved(0, 3, 0), 0);
    EXPECT_TRUE(own.exists() && !own.newest());
}

TEST(OwnState, AWishIsSaidAgainToAProgramThatHasJustCome) {
    OwnState own;
    own.heard({}, 0);
    own.wish(request("command"), 77, 1000, 60'000);
    EXPECT_TRUE(own.take_word(1000));
    EXPECT_FALSE(own.take_word(1100));
    own.heard({}, 1200);
    EXPECT_TRUE(own.take_word(1200));
    EXPECT_FALSE(own.take_word(1300));
}

TEST(OwnState, AWishIsSaidAgainWhenTheRanksHaveComeBack) {
    OwnState own;
    own.heard({}, 0);  // they say so on their way
    own.wish(request("command"), 77, 1000, 60'000);
    EXPECT_TRUE(own.take_word(1000));
    own.runs(1200);
    EXPECT_TRUE(own.take_word(1200));
    EXPECT_FALSE(own.take_word(1300));
}

TEST(OwnState, AWishIsSaidUntilItIsAnswered) {
    OwnState own;
    own.wish(request("command"), 77, 1000, 60'000);
    EXPECT_FALSE(own.take_word(1000));  // nobody is there to hear it
    own.heard({}, 1000);
    EXPECT_EQ(own.take_word(1000)->number, 77u);
    EXPECT_FALSE(own.take_word(1500));
    EXPECT_TRUE(own.take_word(6500));
    own.heard(saved(0), 7000);  // a save that began before the wish
    EXPECT_TRUE(own.take_answers(7000).empty());
    own.heard(saved(77, 4), 8000);
    auto answers = own.take_answers(8000);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_TRUE(answers[0].outcome.ok);
    EXPECT_EQ(answers[0].outcome.generation, Generation(4));
    EXPECT_EQ(answers[0].outcome.directory, "/state");
    EXPECT_EQ(answers[0].outcome.seconds, 7);
    EXPECT_FALSE(own.take_word(20'000));
    EXPECT_EQ(own.ends_by(), 0);
}

TEST(OwnState, ALaterWishIsAnsweredWithTheEarlierOnes) {
    OwnState own;
    own.heard({}, 0);
    own.wish(request("command"), 1, 0, 60'000);
    own.wish(request("signal", true), 2, 10, 30'000);
    EXPECT_TRUE(own.stopping());
    auto word = own.take_word(10);
    EXPECT_TRUE(word->number == 2 && word->exit);
    own.heard(saved(1), 20);
    EXPECT_EQ(own.take_answers(20).size(), 1u);
    EXPECT_EQ(own.ends_by(), 0);
    own.wish(request("interval"), 3, 30, 60'000);
    EXPECT_TRUE(own.take_word(30)->exit);  // nobody takes that back
    own.heard(saved(3), 40);
    EXPECT_EQ(own.take_answers(40).size(), 2u);
    EXPECT_EQ(own.ends_by(), 30'000);
    EXPECT_TRUE(own.stopping());
}

TEST(OwnState, AProgramThatRunsMayBeAboutToCome) {
    OwnState own;
    own.wish(request("command"), 1, 0, 60'000);
    EXPECT_TRUE(own.take_answers(30'000).empty());  // its ranks are not there yet
    own.runs(30'000);
    EXPECT_TRUE(own.take_answers(31'900).empty());
    own.heard({}, 31'950);
    EXPECT_EQ(own.take_word(31'950)->number, 1u);
    EXPECT_TRUE(own.take_answers(40'000).empty());

    OwnState other;
    other.runs(1000);
    other.wish(request("signal", true), 1, 10'000, 60'000);
    EXPECT_TRUE(other.take_answers(11'900).empty());
    auto answers = other.take_answers(12'000);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].outcome.code, ExitCode::refused);
    EXPECT_FALSE(other.stopping());
}

TEST(OwnState, AFailureAndTheTimeAreAnswers) {
    OwnState own;
    own.wish(request("command"), 1, 0, 60'000);
    own.heard({false, false, true, 0, 1, Generation(), 0, "rank 1: no space"}, 5);
    auto answers = own.take_answers(5);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_FALSE(answers[0].outcome.ok);
    EXPECT_NE(answers[0].outcome.line.find("no space"), std::string::npos);
    own.wish(request("command", true), 2, 10, 1000);
    EXPECT_TRUE(own.take_answers(999).empty());
    answers = own.take_answers(1000);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].outcome.code, ExitCode::timeout);
    EXPECT_FALSE(own.stopping() || own.asked_to_end());
    auto word = own.take_word(1001);  // the job goes on, and the program with it
    ASSERT_TRUE(word);
    EXPECT_TRUE(word->number == 0 && !word->exit);
    EXPECT_FALSE(own.take_word(9000));
    own.wish(request("command"), 3, 10, 9000);
    EXPECT_EQ(own.take_rest("over").size(), 1u);
}

}  // namespace
}  // namespace fermata::root
