// Pulling, the drain and the restart of requests.
#include "fake_library.h"

namespace fermata::front {
namespace {

class Engine : public RequestsTest {};

TEST_F(Engine, APulledMessageIsReceivedBeforeALaterOneOfItsTag) {
    arrives(3, "first");
    begin_checkpoint(true);
    pull(record, slot());
    EXPECT_EQ(engine.queue.size(), 1u);
    EXPECT_NE(front.careful & kQueued, 0u);
    arrives(3, "later");
    end_checkpoint();
    EXPECT_NE(front.careful & kQueued, 0u) << "the next receive has to look at the queue";

    Status status{};
    ASSERT_EQ(fm_Recv(buffer, 5, FM_BYTE, 0, 3, FM_COMM_WORLD, &status), 0);
    EXPECT_STREQ(buffer, "first");
    EXPECT_EQ(status.tag, 3);
    EXPECT_EQ(status.count, 5);
    EXPECT_EQ(front.careful & kQueued, 0u);
    ASSERT_EQ(fm_Recv(buffer, 5, FM_BYTE, 0, 3, FM_COMM_WORLD, &status), 0);
    EXPECT_STREQ(buffer, "later");
}

TEST_F(Engine, AMessageIsCountedOnceWhetherPulledOrReceived) {
    uint64_t before = received();
    arrives(1, "a");
    arrives(1, "b");
    ASSERT_EQ(fm_Recv(buffer, 1, FM_BYTE, 0, 1, FM_COMM_WORLD, nullptr), 0);
    EXPECT_EQ(received(), before + 1);
    begin_checkpoint(true);
    pull(record, slot());
    EXPECT_EQ(received(), before + 2);
    ASSERT_EQ(fm_Recv(buffer, 1, FM_BYTE, 0, 1, FM_COMM_WORLD, nullptr), 0);
    EXPECT_EQ(received(), before + 2) << "the drain would wait for a message that nobody has sent";
    end_checkpoint();
}

TEST_F(Engine, AHeldMessageStaysTheLibrarysUntilItIsReceived) {
    front.clock->note_synchronous_sends();
    begin_checkpoint(false);
    if (may_take()) GTEST_SKIP() << "the clock knows that nobody sends synchronously";
    arrives(2, "held");
    uint64_t before = received();
    pull(record, slot());
    ASSERT_EQ(library.matched.size(), 1u) << "its sender must not see it received";
    mpi::Request request;
    ASSERT_EQ(fm_Irecv(buffer, 4, FM_BYTE, 0, 2, FM_COMM_WORLD, &request), 0);
    EXPECT_TRUE(library.matched.empty());
    EXPECT_TRUE(engine.queue.empty());
    EXPECT_NE(object(request)->flags & kCounted, 0);
    ASSERT_EQ(fm_Wait(&request, nullptr), 0);
    EXPECT_STREQ(buffer, "held");
    EXPECT_EQ(received(), before + 1);
    end_checkpoint();
}

TEST_F(Engine, NobodyPullsWhileAnotherThreadIsInTheLibraryWithoutTheLock) {
    static split::ThreadRecord other{};
    other.run = split::Run::running;
    other.in_mpi = 1;
    records[1] = &other;
    record_end = 2;
    arrives(4, "x");
    begin_checkpoint(true);
    for (auto [mode, level, quiet] : {std::tuple{kUnlocked, FM_THREAD_MULTIPLE, false},
                                      {kCareful, FM_THREAD_SERIALIZED, true},
                                      {kCaptive, FM_THREAD_SERIALIZED, false},
                                      {kCaptive, FM_THREAD_MULTIPLE, true},
                                      {kSending, FM_THREAD_MULTIPLE, true}}) {
        other.mode = mode;
        front.library_level = level;
        EXPECT_EQ(others_quiet(record), quiet) << "mode " << mode << " level " << level;
    }
    front.library_level = FM_THREAD_MULTIPLE;
    other.mode = kUnlocked;
    pull(record, slot());
    EXPECT_TRUE(engine.queue.empty());
    engine.armed = 0;
    other.mode = kCareful;
    EXPECT_FALSE(others_quiet(record)) << "the fence is not done";
    records[1] = nullptr;
    record_end = 1;
    end_checkpoint();
    ASSERT_EQ(fm_Recv(buffer, 1, FM_BYTE, 0, 4, FM_COMM_WORLD, nullptr), 0);
}

TEST_F(Engine, APulledMessageThatDoesNotComeIsNeverGivenToTheProgram) {
    arrives(7, "gone with its sender");
    begin_checkpoint(true);
    library.break_matched = mpi::FM_ERR_OTHER;
    EXPECT_DEATH(pull(record, slot()), "has not come whole");
    library.break_matched = 0;
    pull(record, slot());
    end_checkpoint();
    ASSERT_EQ(fm_Recv(buffer, 20, FM_BYTE, 0, 7, FM_COMM_WORLD, nullptr), 0);
}

TEST_F(Engine, AMessageTooLongForItsBufferIsTruncatedAsTheLibraryDoesIt) {
    arrives(6, "too long");
    begin_checkpoint(true);
    pull(record, slot());
    Status status{};
    EXPECT_EQ(fm_Recv(buffer, 3, FM_BYTE, 0, 6, FM_COMM_WORLD, &status), mpi::FM_ERR_TRUNCATE);
    EXPECT_EQ(std::string(buffer), "too");
    EXPECT_EQ(status.count, 3);
    end_checkpoint();
}

TEST_F(Engine, TheDrainIsOpenWhileASendIsAndNotForAPostedReceive) {
    library.sends_wait = true;
    mpi::Request send, receive;
    ASSERT_EQ(fm_Irecv(buffer, 4, FM_BYTE, 0, 9, FM_COMM_WORLD, &receive), 0);
    ASSERT_EQ(fm_Isend("data", 4, FM_BYTE, 0, 8, FM_COMM_WORLD, &send), 0);
    uint64_t real = object(send)->real;
    library.on_the_way.clear();  // as if its receiver were another process
    EXPECT_EQ(drain_frozen().open, 1u);
    library.end(real);
    EXPECT_EQ(drain_frozen().open, 0u);
    EXPECT_EQ(state_of(object(send)), State::complete);
    EXPECT_EQ(state_of(object(receive)), State::active);
    end_checkpoint();
    ASSERT_EQ(fm_Wait(&send, nullptr), 0);
    arrives(9, "come");
    library.deliver(object(receive)->real, library.on_the_way[0]);
    library.on_the_way.clear();
    ASSERT_EQ(fm_Wait(&receive, nullptr), 0);
}

TEST_F(Engine, ARestartPostsReceivesAgainInTheirOrder) {
    mpi::Request requests[3];
    for (int i = 0; i < 3; i++)
        ASSERT_EQ(fm_Irecv(buffer, 4, FM_BYTE, 0, 20 + i, FM_COMM_WORLD, &requests[i]), 0);
    // The pool's order is another one: the first comes last.
    ASSERT_EQ(fm_Cancel(&requests[0]), 0);
    ASSERT_EQ(fm_Wait(&requests[0], nullptr), 0);
    ASSERT_EQ(fm_Irecv(buffer, 4, FM_BYTE, 0, 30, FM_COMM_WORLD, &requests[0]), 0);
    drain_frozen();

    library = {};  // another one
    char error[128] = "";
    ASSERT_EQ(engine_rebuild(error, sizeof error), 0) << error;
    EXPECT_EQ(library.posted_tags, (std::vector<int>{21, 22, 30}));
    end_checkpoint();
    for (mpi::Request& request : requests) {
        ASSERT_EQ(fm_Cancel(&request), 0);
        Status status{};
        ASSERT_EQ(fm_Wait(&request, &status), 0);
        EXPECT_EQ(status.cancelled, 1);
    }
}

TEST_F(Engine, ARestartRefusesASendThatWasLeftOpen) {
    library.sends_wait = true;
    mpi::Request send;
    ASSERT_EQ(fm_Isend("data", 4, FM_BYTE, 0, 8, FM_COMM_WORLD, &send), 0);
    char error[128] = "";
    EXPECT_EQ(engine_rebuild(error, sizeof error), 1);
    EXPECT_NE(std::string(error).find("left open"), std::string::npos) << error;
    library.end(object(send)->real);
    ASSERT_EQ(fm_Wait(&send, nullptr), 0);
}

TEST_F(Engine, ARefusedSendIsNotCounted) {
    uint64_t before = sent();
    library.refuse_sends = mpi::FM_ERR_TAG;
    mpi::Request send;
    EXPECT_EQ(fm_Isend("data", 4, FM_BYTE, 0, 8, FM_COMM_WORLD, &send), mpi::FM_ERR_TAG);
    EXPECT_EQ(sent(), before) << "the drain would wait for a message that was never sent";
}

}  // namespace
}  // namespace fermata::front
