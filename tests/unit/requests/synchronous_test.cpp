// Synchronous sends over a checkpoint: they end when the program has received, whatever the library said
// meanwhile.
#include "front/requests/synchronous.h"

#include "fake_library.h"

namespace fermata::front {
namespace {

class Synchronous : public RequestsTest {
  protected:
    mpi::Request issend(int tag, const char* text) {
        mpi::Request request{};
        EXPECT_EQ(fm_Issend(text, 4, FM_BYTE, 0, tag, FM_COMM_WORLD, &request), 0);
        return request;
    }
    void send(int tag, const char* text) {
        mpi::Request request{};
        ASSERT_EQ(fm_Isend(text, 4, FM_BYTE, 0, tag, FM_COMM_WORLD, &request), 0);
        ASSERT_EQ(fm_Wait(&request, nullptr), 0);
    }
    std::string take(int tag) {
        EXPECT_EQ(fm_Recv(buffer, 4, FM_BYTE, 0, tag, FM_COMM_WORLD, nullptr), 0);
        return buffer;
    }
    // All are frozen, everything is taken, and it is told what was received.
    static void checkpoint() {
        EXPECT_EQ(drain_frozen().open, 0u);
        EXPECT_EQ(synchronous_settle(), 0);
        end_checkpoint();
    }
    static bool ended(mpi::Request& request) {
        int flag = 0;
        EXPECT_EQ(fm_Test(&request, &flag, nullptr), 0);
        return flag != 0;
    }
};

TEST_F(Synchronous, EndsWhenItsMessageIsReceived) {
    mpi::Request request = issend(1, "sync");
    EXPECT_FALSE(ended(request));
    EXPECT_EQ(take(1), "sync");
    EXPECT_TRUE(ended(request));
}

TEST_F(Synchronous, TakenByACheckpointItEndsOnlyWhenTheProgramReceives) {
    mpi::Request request = issend(1, "sync");
    drain_frozen();
    EXPECT_EQ(state_of(object(request)), State::active) << "nobody may hear of it while all are frozen";
    EXPECT_NE(object(request)->flags & kTaken, 0);
    ASSERT_EQ(synchronous_settle(), 0);
    end_checkpoint();
    EXPECT_NE(object(request)->flags & kUnread, 0);
    EXPECT_NE(front.careful & kOwed, 0u);
    EXPECT_FALSE(ended(request));
    EXPECT_EQ(take(1), "sync");
    EXPECT_EQ(front.careful & kOwed, 0u);
    EXPECT_TRUE(ended(request));
}

TEST_F(Synchronous, ReceivedBeforeTheCheckpointItEndsWithIt) {
    mpi::Request request = issend(1, "sync");
    EXPECT_EQ(take(1), "sync");
    checkpoint();
    EXPECT_TRUE(ended(request));
}

// What waits are the last k messages of the channel: a later one beside it says nothing of the synchronous
// one.
TEST_F(Synchronous, OfAChannelTheLastOnesAreUnread) {
    mpi::Request request = issend(1, "sync");
    send(1, "next");
    EXPECT_EQ(take(1), "sync");
    checkpoint();
    EXPECT_TRUE(ended(request)) << "only the later message waits";
    EXPECT_EQ(take(1), "next");

    request = issend(2, "sync");
    send(2, "next");
    send(3, "else");  // another channel counts for nothing
    checkpoint();
    EXPECT_FALSE(ended(request));
    EXPECT_EQ(take(3), "else");
    EXPECT_FALSE(ended(request));
    EXPECT_EQ(take(2), "sync");
    EXPECT_TRUE(ended(request));
    EXPECT_EQ(take(2), "next");
}

TEST_F(Synchronous, ARefusedSendLeavesNoGapInItsChannel) {
    mpi::Request request = issend(1, "sync");
    library.refuse_sends = mpi::FM_ERR_COUNT;
    mpi::Request refused{};
    EXPECT_EQ(fm_Isend("none", 4, FM_BYTE, 0, 1, FM_COMM_WORLD, &refused), mpi::FM_ERR_COUNT);
    library.refuse_sends = 0;
    checkpoint();
    EXPECT_FALSE(ended(request)) << "its own message waits, and no later one was sent";
    EXPECT_EQ(take(1), "sync");
    EXPECT_TRUE(ended(request));
}

TEST_F(Synchronous, GivenUpAfterTheFreezeWhatTheLibraryEndedIsEnded) {
    mpi::Request request = issend(1, "sync");
    drain_frozen();
    {
        SpinGuard guard(library_lock);
        synchronous_given_up();
    }
    end_checkpoint();
    EXPECT_TRUE(ended(request));
    EXPECT_EQ(take(1), "sync");
}

TEST_F(Synchronous, ItIsStillOwedAfterASecondCheckpoint) {
    mpi::Request request = issend(1, "sync");
    checkpoint();
    checkpoint();
    EXPECT_FALSE(ended(request));
    EXPECT_EQ(take(1), "sync");
    EXPECT_TRUE(ended(request));
}

}  // namespace
}  // namespace fermata::front
