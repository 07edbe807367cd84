// Waits, tests, and what else ends a request.
#include "fake_library.h"
#include "front/requests/nonblocking.h"

namespace fermata::front {
namespace {

class Completion : public RequestsTest {
  protected:
    mpi::Request receive(int tag) {
        mpi::Request request{};
        EXPECT_EQ(fm_Irecv(buffer, 4, FM_BYTE, 0, tag, FM_COMM_WORLD, &request), 0);
        return request;
    }
    // What it waits for comes.
    static void come(mpi::Request request, const std::string& bytes = "here") {
        RequestObject* r = object(request);
        library.deliver(r->real, {real_world(), r->tag, bytes, 0});
    }
};

TEST_F(Completion, WaitTellsTheStatusAndTakesTheHandle) {
    mpi::Request request = receive(5);
    come(request);
    uint64_t before = received();
    Status status{};
    ASSERT_EQ(fm_Wait(&request, &status), 0);
    EXPECT_EQ(request, FM_REQUEST_NULL);
    EXPECT_EQ(status.tag, 5);
    EXPECT_EQ(status.count, 4);
    EXPECT_EQ(received(), before + 1);
    ASSERT_EQ(fm_Wait(&request, &status), 0);
    EXPECT_EQ(status.source, mpi::FM_ANY_SOURCE) << "a null request has the empty status";
}

TEST_F(Completion, WaitOfGarbageIsAnError) {
    mpi::Request request{static_cast<uint32_t>(mpi::dynamic_word(Kind::request, 999999))};
    EXPECT_EQ(fm_Wait(&request, nullptr), mpi::FM_ERR_REQUEST);
}

TEST_F(Completion, TestSaysNoUntilItHasCome) {
    mpi::Request request = receive(5);
    int flag = 1;
    ASSERT_EQ(fm_Test(&request, &flag, nullptr), 0);
    EXPECT_EQ(flag, 0);
    EXPECT_NE(request, FM_REQUEST_NULL);
    come(request);
    ASSERT_EQ(fm_Test(&request, &flag, nullptr), 0);
    EXPECT_EQ(flag, 1);
    EXPECT_EQ(request, FM_REQUEST_NULL);
}

TEST_F(Completion, WaitallSaysWhichOneFailed) {
    mpi::Request requests[3] = {receive(1), receive(2), FM_REQUEST_NULL};
    come(requests[0], "much too long");
    come(requests[1]);
    Status statuses[3] = {};
    EXPECT_EQ(fm_Waitall(3, requests, statuses), mpi::FM_ERR_IN_STATUS);
    EXPECT_EQ(statuses[0].error, mpi::FM_ERR_TRUNCATE);
    EXPECT_EQ(statuses[1].error, 0);
    EXPECT_EQ(statuses[1].tag, 2);
    EXPECT_EQ(statuses[2].source, mpi::FM_ANY_SOURCE);
    for (mpi::Request request : requests) EXPECT_EQ(request, FM_REQUEST_NULL);
}

TEST_F(Completion, WaitallTakesAllInOneCrossingWithoutAStatus) {
    mpi::Request requests[2] = {receive(1), receive(2)};
    come(requests[0]);
    come(requests[1]);
    uint64_t before = received();
    ASSERT_EQ(fm_Waitall(2, requests, nullptr), 0);
    EXPECT_EQ(received(), before + 2);
    EXPECT_EQ(library.looks, 2);
}

TEST_F(Completion, TestallTellsNothingOfSome) {
    mpi::Request requests[2] = {receive(1), receive(2)};
    come(requests[1]);
    int flag = 1;
    Status statuses[2] = {};
    ASSERT_EQ(fm_Testall(2, requests, &flag, statuses), 0);
    EXPECT_EQ(flag, 0);
    EXPECT_NE(requests[0], FM_REQUEST_NULL);
    EXPECT_NE(requests[1], FM_REQUEST_NULL);
    come(requests[0]);
    ASSERT_EQ(fm_Testall(2, requests, &flag, statuses), 0);
    EXPECT_EQ(flag, 1);
    EXPECT_EQ(statuses[0].tag, 1);
    EXPECT_EQ(statuses[1].tag, 2);
}

TEST_F(Completion, AnyOfManyNoneOrOneAndUndefinedWithoutAny) {
    mpi::Request requests[2] = {receive(1), receive(2)};
    int index = 7, flag = 7;
    Status status{};
    ASSERT_EQ(fm_Testany(2, requests, &index, &flag, &status), 0);
    EXPECT_EQ(flag, 0);
    EXPECT_EQ(index, mpi::FM_UNDEFINED);
    come(requests[1]);
    ASSERT_EQ(fm_Waitany(2, requests, &index, &status), 0);
    EXPECT_EQ(index, 1);
    EXPECT_EQ(status.tag, 2);
    come(requests[0]);
    ASSERT_EQ(fm_Testany(2, requests, &index, &flag, &status), 0);
    EXPECT_EQ(flag, 1);
    EXPECT_EQ(index, 0);
    ASSERT_EQ(fm_Waitany(2, requests, &index, &status), 0);
    EXPECT_EQ(index, mpi::FM_UNDEFINED);
    ASSERT_EQ(fm_Testany(2, requests, &index, &flag, &status), 0);
    EXPECT_EQ(flag, 1) << "nothing to wait for is complete";
    EXPECT_EQ(index, mpi::FM_UNDEFINED);
}

TEST_F(Completion, SomeOfMany) {
    mpi::Request requests[3] = {receive(1), receive(2), receive(3)};
    int count = 0, indices[3];
    ASSERT_EQ(fm_Testsome(3, requests, &count, indices, nullptr), 0);
    EXPECT_EQ(count, 0);
    come(requests[0]);
    come(requests[2]);
    Status statuses[3] = {};
    ASSERT_EQ(fm_Waitsome(3, requests, &count, indices, statuses), 0);
    ASSERT_EQ(count, 2);
    EXPECT_EQ(indices[0], 0);
    EXPECT_EQ(indices[1], 2);
    EXPECT_EQ(statuses[1].tag, 3);
    come(requests[1]);
    ASSERT_EQ(fm_Waitsome(3, requests, &count, indices, statuses), 0);
    EXPECT_EQ(count, 1);
    ASSERT_EQ(fm_Waitsome(3, requests, &count, indices, statuses), 0);
    EXPECT_EQ(count, mpi::FM_UNDEFINED);
}

TEST_F(Completion, TheStatusOfARequestIsToldWhileItStays) {
    mpi::Request request = receive(4);
    int flag = 1;
    Status status{};
    ASSERT_EQ(fm_Request_get_status(request, &flag, &status), 0);
    EXPECT_EQ(flag, 0);
    come(request);
    ASSERT_EQ(fm_Request_get_status(request, &flag, &status), 0);
    EXPECT_EQ(flag, 1);
    EXPECT_EQ(status.tag, 4);
    ASSERT_EQ(fm_Wait(&request, &status), 0);
    EXPECT_EQ(status.tag, 4);
}

TEST_F(Completion, AFreedRequestIsGivenBackWhenItEnds) {
    library.sends_wait = true;
    mpi::Request send;
    ASSERT_EQ(fm_Isend("data", 4, FM_BYTE, 0, 8, FM_COMM_WORLD, &send), 0);
    uint64_t real = object(send)->real;
    RequestObject* r = object(send);
    ASSERT_EQ(fm_Request_free(&send), 0);
    EXPECT_EQ(send, FM_REQUEST_NULL);
    ASSERT_EQ(engine.orphans, r);
    library.end(real);
    {
        SpinGuard guard(library_lock);
        reap_orphans(slot());
    }
    EXPECT_EQ(state_of(r), State::free);
}

TEST_F(Completion, APersistentRequestStaysInactive) {
    mpi::Request request{};
    ASSERT_EQ(fm_Recv_init(buffer, 4, FM_BYTE, 0, 6, FM_COMM_WORLD, &request), 0);
    for (int turn = 0; turn < 2; turn++) {
        ASSERT_EQ(fm_Start(&request), 0);
        EXPECT_EQ(fm_Start(&request), mpi::FM_ERR_REQUEST) << "it is active";
        come(request);
        Status status{};
        ASSERT_EQ(fm_Wait(&request, &status), 0);
        EXPECT_NE(request, FM_REQUEST_NULL);
        EXPECT_EQ(status.tag, 6);
    }
    ASSERT_EQ(fm_Request_free(&request), 0);
}

TEST_F(Completion, GeneralizedRequestsEndWhenTheProgramSaysSo) {
    static int freed;
    freed = 0;
    mpi::Request request{};
    ASSERT_EQ(fm_Grequest_start(
                  nullptr,
                  [](void*, void*, mpi::Status* status) {
                      status->tag = 77;
                      return 0;
                  },
                  nullptr, [](void*, void*) { return ++freed, 0; }, nullptr, nullptr, nullptr, &request),
              0);
    int flag = 1;
    ASSERT_EQ(fm_Test(&request, &flag, nullptr), 0);
    EXPECT_EQ(flag, 0);
    ASSERT_EQ(fm_Grequest_complete(request), 0);
    Status status{};
    ASSERT_EQ(fm_Wait(&request, &status), 0);
    EXPECT_EQ(status.tag, 77);
    EXPECT_EQ(freed, 1);
}

TEST_F(Completion, ACollectiveEndsOnceAndIsCountedWhenItIsTold) {
    CollectiveRecord* described = new_collective(
        [](CollectiveRecord*, RealComm comm, RealRequest* real) { return LOWER(Ibarrier)(comm, real); },
        "MPI_Ibarrier");
    mpi::Request request{};
    ASSERT_EQ(begin_collective(record, &comm_world, described, &request), 0);
    RequestObject* r = object(request);
    int flag = 1;
    ASSERT_EQ(fm_Test(&request, &flag, nullptr), 0);
    EXPECT_EQ(flag, 0);
    EXPECT_LT(comm_world.clock->told.load(), r->collective->instance);
    library.end(r->real);
    uint64_t instance = r->collective->instance;
    ASSERT_EQ(fm_Wait(&request, nullptr), 0);
    EXPECT_EQ(comm_world.clock->told.load(), instance);
}

}  // namespace
}  // namespace fermata::front
