// Children that ended before anybody asked: noted as the kernel tells, answered once, in the process that has
// taken the place of the one that noted them.
#include "split/process/ended.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "split/ids/ids.h"

namespace fermata::split {
namespace {

using process::Child;
using process::note_ended;

struct Ended : ::testing::Test {
    std::unique_ptr<EndedChildren> table = std::make_unique<EndedChildren>();
    std::unique_ptr<ids::Table> ids = std::make_unique<ids::Table>();

    static int child(int code, int signal) {
        const int pid = ::fork();
        if (pid == 0) {
            if (signal != 0) ::kill(::getpid(), signal);
            ::_exit(code);
        }
        return pid;
    }
    static void wait_until_ended(int pid) {
        siginfo_t info = {};
        ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
    }
    // The status that wait4 would give, -1: there is none.
    int ask(idtype_t type, int id, bool stays = false) {
        int status = -1;
        ask_ended(*table, type, id, stays, [&](const EndedChild& one) { status = wait_status(one); });
        return status;
    }
};

TEST_F(Ended, IsAnsweredOnceAndOnlyInTheNextProcess) {
    const int three = child(3, 0), killed = child(0, SIGTERM);
    wait_until_ended(three), wait_until_ended(killed);
    const std::vector<Child> all = {{three, true, "a"}, {killed, true, "b"}};
    EXPECT_EQ(note_ended(*table, all, *ids, false), 0u);
    // This process goes on: the kernel knows them.
    EXPECT_FALSE(table->any());
    EXPECT_EQ(ask(P_ALL, 0), -1);
    process::take_over_ended(*table);
    EXPECT_EQ(table->process, ::getpid());
    EXPECT_EQ(table->waiting, 2u);
    EXPECT_EQ(ask(P_PID, killed), SIGTERM);
    EXPECT_EQ(ask(P_PID, killed), -1);
    EXPECT_EQ(ask(P_PGID, ::getpgrp(), true), 3 << 8);
    EXPECT_EQ(ask(P_ALL, 0), 3 << 8);
    EXPECT_FALSE(table->any());
    // Looking did not reap them.
    int status = 0;
    EXPECT_EQ(::waitpid(three, &status, 0), three);
    EXPECT_EQ(::waitpid(killed, &status, 0), killed);
}

TEST_F(Ended, OneThatRunsIsKilledForAnImageAndNothingForARenewal) {
    const int pid = ::fork();
    if (pid == 0)
        for (;;) ::pause();
    const std::vector<Child> all = {{pid, false, "runs"}};
    note_ended(*table, all, *ids, false);
    process::take_over_ended(*table);
    EXPECT_FALSE(table->any());
    note_ended(*table, all, *ids, true);
    process::take_over_ended(*table);
    EXPECT_EQ(ask(P_PID, pid), SIGKILL);
    // Nobody is told of the end of children that are not to be waited for.
    ::signal(SIGCHLD, SIG_IGN);
    note_ended(*table, all, *ids, true);
    ::signal(SIGCHLD, SIG_DFL);
    process::take_over_ended(*table);
    EXPECT_FALSE(table->any());
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
}

TEST_F(Ended, WhatWasNotedBeforeIsForgottenAndWhatWaitsStays) {
    const int first = child(1, 0), second = child(2, 0);
    wait_until_ended(first), wait_until_ended(second);
    note_ended(*table, {{first, true, "a"}}, *ids, false);
    process::take_over_ended(*table);
    note_ended(*table, {{second, true, "b"}}, *ids, false);
    note_ended(*table, {{second, true, "b"}}, *ids, false);
    process::take_over_ended(*table);
    EXPECT_EQ(table->waiting, 2u);
    EXPECT_EQ(ask(P_PID, second), 2 << 8);
    EXPECT_EQ(ask(P_PID, second), -1);
    EXPECT_EQ(ask(P_PID, first), 1 << 8);
    ::waitpid(first, nullptr, 0), ::waitpid(second, nullptr, 0);
}

TEST_F(Ended, OneThatIsBeingReadIsCounted) {
    table->child[7].state = EndedChild::kTaken;
    process::take_over_ended(*table);
    EXPECT_EQ(table->waiting, 1u);
    EXPECT_EQ(ask(P_ALL, 0), -1);
}

TEST_F(Ended, WithoutRoomIsCounted) {
    const int pid = child(9, 0);
    wait_until_ended(pid);
    const std::vector<Child> many(EndedChildren::kMost + 5, Child{pid, true, "many"});
    EXPECT_EQ(note_ended(*table, many, *ids, false), 5u);
    ::waitpid(pid, nullptr, 0);
}

TEST_F(Ended, IsCalledAsTheProgramKnowsIt) {
    const int pid = child(9, 0);
    wait_until_ended(pid);
    ids::put(*ids, {pid + 1000000, pid, ids::Kind::gone, 0});
    ids::order(*ids);
    note_ended(*table, {{pid, true, "a"}}, *ids, false);
    process::take_over_ended(*table);
    EXPECT_EQ(ask(P_PID, pid), -1);
    EXPECT_EQ(ask(P_PID, pid + 1000000), 9 << 8);
    ::waitpid(pid, nullptr, 0);
}

}  // namespace
}  // namespace fermata::split
