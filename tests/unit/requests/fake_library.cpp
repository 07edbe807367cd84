#include "fake_library.h"

#include <algorithm>
#include <cstring>

#include "front/core/bridge.h"
#include "front/objects/internal.h"
#include "front/objects/objects.h"
#include "front/requests/nonblocking.h"

fermata::split::UpperServices fermata_upper{};

namespace fermata::front {

FakeLibrary library;
split::ThreadRecord* RequestsTest::record;

namespace {

mpi::Table table{};
split::Bridge lower{};
split::ThreadRecord thread_record{};
char control_block[64];
uint64_t no_ended_send = 0;
mpi::Direct::Look no_look = nullptr;

uint64_t world_real() { return 1000 + static_cast<uint64_t>(word_of(FM_COMM_WORLD)); }
constexpr uint64_t kPrivateWorld = 7;

template <typename T>
uint64_t number(T handle) {
    return static_cast<uint64_t>(handle);
}

}  // namespace

uint64_t real_world() { return world_real(); }

uint64_t FakeLibrary::begin_send(const void* buf, size_t bytes, int tag, uint64_t comm, bool waits) {
    uint64_t request = ++last;
    operations[request] = Operation{};
    operations[request].done = !waits;
    Letter letter{comm, tag, std::string(static_cast<const char*>(buf), bytes), waits ? request : 0};
    for (auto& [id, open] : operations)
        if (open.receives && !open.done && open.comm == comm &&
            (open.tag == tag || open.tag == mpi::FM_ANY_TAG)) {
            deliver(id, letter);
            return request;
        }
    on_the_way.push_back(letter);
    return request;
}

uint64_t FakeLibrary::begin_receive(void* buf, size_t room, int tag, uint64_t comm) {
    posted_tags.push_back(tag);
    uint64_t request = ++last;
    Operation open;
    open.receives = true;
    open.comm = comm;
    open.tag = tag;
    open.buf = buf;
    open.room = room;
    operations[request] = open;
    for (size_t i = 0; i < on_the_way.size(); i++) {
        Letter letter = on_the_way[i];
        if (letter.comm != comm || (letter.tag != tag && tag != mpi::FM_ANY_TAG)) continue;
        on_the_way.erase(on_the_way.begin() + static_cast<ptrdiff_t>(i));
        deliver(request, letter);
        break;
    }
    return request;
}

void FakeLibrary::deliver(uint64_t request, const Letter& letter) {
    Operation& open = operations.at(request);
    size_t bytes = std::min(open.room, letter.bytes.size());
    if (bytes > 0) std::memcpy(open.buf, letter.bytes.data(), bytes);
    open.error = letter.bytes.size() > open.room ? mpi::FM_ERR_TRUNCATE : 0;
    open.status = Status{0, letter.tag, open.error, 0, static_cast<Count>(bytes), 0};
    open.done = true;
    if (letter.send != 0) operations.at(letter.send).done = true;
}

namespace {

size_t size_of(RealDatatype type) {
    return type == to_real(FM_INT) ? 4 : type == to_real(FM_BYTE) || type == to_real(FM_PACKED) ? 1 : 8;
}

int test(RealRequest* request, int* flag, Status* status) {
    library.looks++;
    *flag = 0;
    if (number(*request) == 0) {
        *flag = 1;
        return 0;
    }
    auto found = library.operations.find(number(*request));
    if (found == library.operations.end()) return mpi::FM_ERR_REQUEST;
    if (!found->second.done) return 0;
    *flag = 1;
    if (status != nullptr) *status = found->second.status;
    int error = found->second.error;
    library.operations.erase(found);
    *request = RealRequest{};
    return error;
}

int irecv(void* buf, Count count, RealDatatype type, int, int tag, RealComm comm, RealRequest* request) {
    *request = RealRequest{
        library.begin_receive(buf, static_cast<size_t>(count) * size_of(type), tag, number(comm))};
    return 0;
}
int isend(const void* buf, Count count, RealDatatype type, int, int tag, RealComm comm,
          RealRequest* request) {
    if (library.refuse_sends != 0) return library.refuse_sends;
    *request = RealRequest{library.begin_send(buf, static_cast<size_t>(count) * size_of(type), tag,
                                              number(comm), library.sends_wait)};
    return 0;
}
int issend(const void* buf, Count count, RealDatatype type, int, int tag, RealComm comm,
           RealRequest* request) {
    *request = RealRequest{
        library.begin_send(buf, static_cast<size_t>(count) * size_of(type), tag, number(comm), true)};
    return 0;
}

int wait_all(int n, RealRequest* requests, Status* statuses, const volatile uint32_t* stop, int* next) {
    int failed = 0;
    for (; *next < n; ++*next) {
        Status one{};
        int flag = 0, rc = 0;
        while (flag == 0) {
            rc = test(&requests[*next], &flag, &one);
            if (flag == 0 && *stop != 0) return failed;
            if (flag == 0) throw std::runtime_error("a wait that would never end");
        }
        one.error = rc;
        if (statuses != nullptr) statuses[*next] = one;
        if (rc != 0) failed = n == 1 ? rc : mpi::FM_ERR_IN_STATUS;
    }
    return failed;
}
int wait_one(RealRequest* request, Status* status, const volatile uint32_t* stop) {
    int next = 0;
    Status own{};
    int rc = wait_all(1, request, status != nullptr ? status : &own, stop, &next);
    return next == 1 ? rc : -1;
}
int wait_any(int n, RealRequest* requests, int* index, Status* status, const volatile uint32_t* stop,
             int* done) {
    for (int i = 0; i < n; i++) {
        if (number(requests[i]) == 0) continue;
        int rc = test(&requests[i], done, status);
        if (*done == 0) continue;
        *index = i;
        return rc;
    }
    if (*stop == 0) throw std::runtime_error("a wait that would never end");
    return 0;
}
int receive_spin(void* buf, Count count, RealDatatype type, int source, int tag, RealComm comm,
                 const volatile uint32_t* stop, RealRequest* request, Status* status) {
    irecv(buf, count, type, source, tag, comm, request);
    return wait_one(request, status, stop);
}

int match(RealComm comm, int tag, int* found, RealMessage* message, Status* status) {
    *found = 0;
    for (size_t i = 0; i < library.on_the_way.size(); i++) {
        const FakeLibrary::Letter letter = library.on_the_way[i];
        if (letter.comm != number(comm) || (letter.tag != tag && tag != mpi::FM_ANY_TAG)) continue;
        *found = 1;
        if (status != nullptr)
            *status = Status{0, letter.tag, 0, 0, static_cast<Count>(letter.bytes.size()), 0};
        if (message == nullptr) return 0;
        *message = RealMessage{++library.last};
        library.matched[library.last] = letter;
        library.on_the_way.erase(library.on_the_way.begin() + static_cast<ptrdiff_t>(i));
        return 0;
    }
    return 0;
}
int receive_matched(void* buf, Count count, RealDatatype type, RealMessage* message, RealRequest* request) {
    auto found = library.matched.find(number(*message));
    if (found == library.matched.end()) return mpi::FM_ERR_REQUEST;
    FakeLibrary::Operation open;
    open.receives = true;
    open.buf = buf;
    open.room = static_cast<size_t>(count) * size_of(type);
    uint64_t id = ++library.last;
    library.operations[id] = open;
    if (library.break_matched != 0)
        library.end(id, library.break_matched);
    else
        library.deliver(id, found->second);
    library.matched.erase(found);
    *request = RealRequest{id};
    *message = RealMessage{};
    return 0;
}

void fill_table() {
    table.RealOfPredefined = [](uint32_t, uint32_t word) { return uint64_t{1000} + word; };
    table.Type_size = [](RealDatatype type, Count* size) {
        *size = static_cast<Count>(size_of(type));
        return 0;
    };
    table.Type_get_extent = table.Type_get_true_extent = [](RealDatatype type, Count* lb, Count* extent) {
        *lb = 0;
        *extent = static_cast<Count>(size_of(type));
        return 0;
    };
    table.Op_commutative = [](RealOp, int* commutes) {
        *commutes = 1;
        return 0;
    };
    table.WorldAttribute = [](int, int64_t*, int* found) { return *found = 0; };
    table.ClassOf = [](int code) { return code; };
    table.Comm_dup = [](RealComm, RealComm* made) {
        *made = RealComm{++library.last};
        return 0;
    };
    table.Progress = [] {};
    table.Test = test;
    table.Irecv = irecv;
    table.Isend = isend;
    table.Issend = issend;
    table.WaitSpin = wait_all;
    table.WaitOneSpin = wait_one;
    table.WaitAnySpin = wait_any;
    table.RecvSpin = receive_spin;
    table.Imrecv = receive_matched;
    table.PullOne = [](RealComm comm, int* found, RealMessage* message, Status* status) {
        return match(comm, mpi::FM_ANY_TAG, found, message, status);
    };
    table.Iprobe = [](int, int tag, RealComm comm, int* flag, Status* status) {
        return match(comm, tag, flag, nullptr, status);
    };
    table.Cancel = [](RealRequest* request) {
        FakeLibrary::Operation& open = library.operations.at(number(*request));
        if (open.done) return 0;
        open.done = true;
        open.status.cancelled = 1;
        return 0;
    };
    table.Ibarrier = [](RealComm, RealRequest* request) {
        *request = RealRequest{++library.last};
        library.operations[library.last] = {};
        return 0;
    };
    // A world of one: everybody's answer is one's own.
    table.Allreduce = [](const void* in, void* out, Count count, RealDatatype type, RealOp, RealComm) {
        std::memcpy(out, in, static_cast<size_t>(count) * size_of(type));
        return 0;
    };
    table.Alltoall = [](const void* in, Count count, RealDatatype type, void* out, Count, RealDatatype,
                        RealComm) {
        std::memcpy(out, in, static_cast<size_t>(count) * size_of(type));
        return 0;
    };
    table.Alltoallv = [](const void* in, const int* counts, const int*, RealDatatype type, void* out,
                         const int*, const int*, RealDatatype, RealComm) {
        if (counts[0] > 0) std::memcpy(out, in, static_cast<size_t>(counts[0]) * size_of(type));
        return 0;
    };
    table.direct.Isend = [](const void* buf, int count, RealDatatype type, int dest, int tag, RealComm comm,
                            RealRequest* request) {
        return isend(buf, count, type, dest, tag, comm, request);
    };
    table.direct.Irecv = [](void* buf, int count, RealDatatype type, int source, int tag, RealComm comm,
                            RealRequest* request) {
        return irecv(buf, count, type, source, tag, comm, request);
    };
    table.direct.ended_send = &no_ended_send;
    table.direct.look_at_receive = &no_look;
}

void fill_bridge() {
    lower.mpi = &table;
    lower.world_size = 1;
    lower.thread_level = FM_THREAD_MULTIPLE;
    lower.mpi_library = "openmpi";
    lower.private_world = kPrivateWorld;
    lower.poke_agent = []() noexcept {};
    lower.stop_point = []() noexcept {};
    lower.warn = [](const char*) noexcept {};
    lower.fatal = [](const char* line, int) noexcept {
        fprintf(stderr, "%s\n", line);
        abort();
    };
    fermata_upper.bridge = &lower;
}

// The one thread, known to the front as Call::attach would make it.
void be_a_thread() {
    uint64_t thread_pointer;
    asm("movq %%fs:0, %0" : "=r"(thread_pointer));
    thread_record.upper_fs = thread_pointer;
    thread_record.lower_fs = reinterpret_cast<uint64_t>(control_block);
    thread_record.half = split::Half::upper;
    thread_record.waiting_for = -1;
    split::be_known_as(&thread_record);
    thread_record.slot = &front.clock->slot(0);
    records[0] = &thread_record;
    record_end = 1;
}

void start_once() {
    if (front.clock != nullptr) return;
    fill_table();
    fill_bridge();
    front.table = &table;
    front.direct = table.direct;
    front.ended_send = no_ended_send;
    front.world_size = 1;
    front.library_level = FM_THREAD_MULTIPLE;
    start_clock();
    be_a_thread();
    objects_start();
    front.life = Life::running;
    comm_world.errhandler = &errors_return;
}

int live_requests() {
    int count = 0;
    for_each_request([&](RequestObject*) { count++; });
    return count;
}

}  // namespace

void RequestsTest::SetUp() {
    start_once();
    record = &thread_record;
    library = {};
}

void RequestsTest::TearDown() {
    EXPECT_EQ(live_requests(), 0) << "a request was not given back";
    EXPECT_TRUE(engine.queue.empty()) << "a message waits in the queue";
    EXPECT_EQ(engine.orphans, nullptr);
    EXPECT_EQ(front.careful, 0u) << "calls are still sent to the careful tier";
    EXPECT_EQ(record->in_mpi, 0u);
    EXPECT_EQ(record->mode, kUnlocked);
    EXPECT_TRUE(library.matched.empty());
}

void RequestsTest::arrives(int tag, const std::string& bytes, uint64_t comm) {
    library.on_the_way.push_back({comm != 0 ? comm : world_real(), tag, bytes, 0});
}

void RequestsTest::begin_checkpoint(bool take) {
    set_careful(kPending);
    engine.armed = 1;
    engine.take = take ? 1 : 0;
}

void RequestsTest::end_checkpoint() {
    engine.armed = 0;
    engine.take = 0;
    queue_changed();
    clear_careful(kPending | kFrozen);
}

split::DrainReport RequestsTest::drain_frozen() {
    set_careful(kPending | kFrozen);
    engine.armed = 1;
    engine.take = 1;
    split::DrainReport report{};
    // A round that takes something is not the last one.
    for (int round = 0; round < 3; round++) {
        engine_drain(&report);
        if (report.open == 0) break;
    }
    return report;
}

}  // namespace fermata::front
