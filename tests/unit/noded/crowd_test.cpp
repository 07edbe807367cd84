// Those who are ready, of many who are watched.
#include "noded/crowd.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

namespace fermata::noded {
namespace {

struct Pair {
    Fd mine, other;
    Pair() {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
        mine = Fd(ends[0]);
        other = Fd(ends[1]);
    }
    void say() const { EXPECT_EQ(::send(other.get(), "x", 1, 0), 1); }
};

bool polled(const Crowd& crowd) {
    pollfd one{crowd.fd(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
}

TEST(Crowd, OnlyThoseWhoSpeakAreReady) {
    Crowd crowd;
    Pair pairs[4];
    for (Pair& one : pairs) ASSERT_TRUE(crowd.add(one.mine.get(), &one));
    EXPECT_FALSE(polled(crowd));
    EXPECT_TRUE(crowd.ready().empty());
    pairs[1].say();
    pairs[3].other.reset();
    EXPECT_TRUE(polled(crowd));
    std::set<void*> who;
    for (const Crowd::One& one : crowd.ready()) {
        who.insert(one.who);
        EXPECT_TRUE(one.revents & POLLIN);
        EXPECT_EQ((one.revents & POLLHUP) != 0, one.who == &pairs[3]);
    }
    EXPECT_EQ(who, (std::set<void*>{&pairs[1], &pairs[3]}));
}

TEST(Crowd, WritingIsWatchedOnRequest) {
    Crowd crowd;
    Pair pair;
    ASSERT_TRUE(crowd.add(pair.mine.get(), &pair));
    EXPECT_FALSE(polled(crowd));
    crowd.watch_writing(pair.mine.get(), &pair, true);
    ASSERT_EQ(crowd.ready().size(), 1u);
    EXPECT_EQ(crowd.ready()[0].revents, POLLOUT);
    crowd.watch_writing(pair.mine.get(), &pair, false);
    EXPECT_FALSE(polled(crowd));
}

// A process that is being started holds it for a moment: closing alone would not end the watch.
TEST(Crowd, WhoIsForgottenIsNeverReady) {
    Crowd crowd;
    Pair pair;
    ASSERT_TRUE(crowd.add(pair.mine.get(), &pair));
    Fd held(::dup(pair.mine.get()));
    crowd.forget(pair.mine.get());
    pair.mine.reset();
    pair.say();
    EXPECT_FALSE(polled(crowd));
}

}  // namespace
}  // namespace fermata::noded
