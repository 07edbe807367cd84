#include "lower/binding/look.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstring>
#include <initializer_list>

#include "lower/binding/library.h"

namespace fermata::lower {

mpi::Direct::Look look_at_receive;

namespace {

void copy_but_error(const MPI_Status& from, MPI_Status* to) {
    const int error = to->MPI_ERROR;
    *to = from;
    to->MPI_ERROR = error;
}

// A message of `sent` bytes to oneself, for which there is room for `room`.
struct Message {
    int sent, room, tag;
    // Its receive has not begun when it comes. (One that has, Open MPI 4.1.4 cuts off without a word.)
    bool unexpected = false;
};
// Calls `before` with the receive as it has begun, and `after` once MPI_Request_get_status has said something
// of it. False: something failed.
template <typename Before, typename After>
bool send_to_self(const Message& m, Before before, After after) {
    constexpr int kLooks = 100000, kMost = 16;
    char out[kMost] = {}, in[kMost];
    MPI_Request send = MPI_REQUEST_NULL, receive;
    const auto begin_send = [&] {
        return MPI_Isend(out, m.sent, MPI_BYTE, 0, m.tag, MPI_COMM_SELF, &send) == MPI_SUCCESS;
    };
    if (m.sent > kMost || m.room > kMost || (m.unexpected && !begin_send())) return false;
    if (MPI_Irecv(in, m.room, MPI_BYTE, 0, m.tag, MPI_COMM_SELF, &receive) != MPI_SUCCESS) return false;
    before(receive);
    if (!m.unexpected && !begin_send()) return false;
    MPI_Status status{};
    int there = 0, rc = MPI_SUCCESS;
    for (int looks = kLooks; looks > 0 && there == 0 && rc == MPI_SUCCESS; --looks)
        rc = MPI_Request_get_status(receive, &there, &status);
    after(receive, status, rc);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    return there != 0 || rc != MPI_SUCCESS;
}

// Not more of them than a wait makes without giving way to others (Patience).
constexpr int kTurns = 64;

// Is this the status of a message that was longer than its buffer? Open MPI 4.1.4 with ob1 says it with a
// count (and ends the job on all other errors), MPICH 4.0.2 by the code of the call.
bool says_truncated([[maybe_unused]] const MPI_Status& status, [[maybe_unused]] uint64_t room) {
#if defined(OPEN_MPI)
    return status._ucount > room;
#else
    return false;
#endif
}
int look_by_get_status(mpi::RealRequest request, void* status, uint64_t room, const volatile uint32_t* stop) {
    MPI_Status said{};
    for (int turns = kTurns; turns > 0 && *stop == 0; --turns) {
        int there = 0;
        if (MPI_Request_get_status(lib(request), &there, &said) != MPI_SUCCESS) return -1;
        if (there == 0) continue;
        if (__builtin_expect(says_truncated(said, room), 0)) return -1;
        if (status != MPI_STATUS_IGNORE) copy_but_error(said, static_cast<MPI_Status*>(status));
        return 1;
    }
    return 0;
}
bool sees_truncation() {
    bool seen = false;
    const auto hear = [&](MPI_Request, const MPI_Status& status, int rc) {
        seen = rc != MPI_SUCCESS || says_truncated(status, 1);
    };
    return send_to_self(
               {2, 1, 0, true}, [](MPI_Request) {}, hear) &&
           seen;
}

#if defined(OPEN_MPI)

// Open MPI's MPI_Test and MPI_Request_get_status have two locked instructions each, before which the
// processor finishes all that it has still to store; MPI_Recv has none, so a ping-pong through them takes 6 %
// longer. Such a test reads a word of the request and the status in it. Where these are, messages to oneself
// show: the one word that is 0 before and 1 after each of them, and what the library says of the message.
struct Places {
    size_t ended = 0, status = 0;
};
Places places;
void (*turn_engine)();

const std::byte* bytes_of(MPI_Request request) { return reinterpret_cast<const std::byte*>(request); }
MPI_Status status_at(const std::byte* place) {
    MPI_Status status;
    std::memcpy(&status, place, sizeof status);
    return status;
}

int look_at_words(mpi::RealRequest real, void* status, uint64_t, const volatile uint32_t* stop) {
    const std::byte* const request = bytes_of(lib(real));
    const auto* const ended = reinterpret_cast<const uint64_t*>(request + places.ended);
    for (int turns = kTurns; turns > 0 && *stop == 0; --turns) {
        turn_engine();
        if (__atomic_load_n(ended, __ATOMIC_ACQUIRE) != 1) continue;
        // Field by field, as they were stored a moment ago.
        const auto* const said = reinterpret_cast<const MPI_Status*>(request + places.status);
        if (__builtin_expect(said->MPI_ERROR != MPI_SUCCESS, 0)) return -1;
        if (status == MPI_STATUS_IGNORE) return 1;
        auto* const to = static_cast<MPI_Status*>(status);
        to->MPI_SOURCE = said->MPI_SOURCE;
        to->MPI_TAG = said->MPI_TAG;
        to->_cancelled = said->_cancelled;
        to->_ucount = said->_ucount;
        return 1;
    }
    return 0;
}

// The first of a request, in words: the part that requests of all kinds have (152 bytes in Open MPI 4.1.4).
constexpr size_t kWords = 16;

// Which of them may be the places, after some messages: bit i for word i.
struct Candidates {
    uint32_t ended = (1U << kWords) - 1, status = (1U << (kWords - sizeof(MPI_Status) / 8 + 1)) - 1;

    // `error`: what the library says at its end.
    bool narrow(const Message& m, int error) {
        uint64_t words[kWords], later[kWords];
        const bool ended_as_it_should = send_to_self(
            m, [&](MPI_Request request) { std::memcpy(words, bytes_of(request), sizeof words); },
            [&](MPI_Request request, const MPI_Status&, int) {
                std::memcpy(later, bytes_of(request), sizeof later);
            });
        for (size_t i = 0; i < kWords; ++i) {
            if (later[i] != 1 || (words[i] != 0 && !m.unexpected)) ended &= ~(1U << i);
            if ((status >> i & 1) == 0) continue;
            const MPI_Status found = status_at(reinterpret_cast<const std::byte*>(&later[i]));
            if (found.MPI_SOURCE != 0 || found.MPI_TAG != m.tag || found.MPI_ERROR != error ||
                found._cancelled != 0 || found._ucount != static_cast<size_t>(m.sent))
                status &= ~(1U << i);
        }
        return ended_as_it_should;
    }
    bool leave_one() const { return __builtin_popcount(ended) == 1 && __builtin_popcount(status) == 1; }
};

bool find_places() {
    turn_engine = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "opal_progress"));
    if (turn_engine == nullptr) return false;
    Candidates may_be;
    for (const Message& m : {Message{3, 16, 0x5a17}, {7, 7, 0x11}, {0, 16, 0x2b05}, {5, 8, 0x77, true}})
        if (!may_be.narrow(m, MPI_SUCCESS)) return false;
    if (!may_be.narrow({9, 4, 0x1c33, true}, MPI_ERR_TRUNCATE) || !may_be.leave_one()) return false;
    places = {8 * static_cast<size_t>(__builtin_ctz(may_be.ended)),
              8 * static_cast<size_t>(__builtin_ctz(may_be.status))};
    return true;
}

#endif

}  // namespace

void find_look() {
    look_at_receive = sees_truncation() ? look_by_get_status : nullptr;
#if defined(OPEN_MPI)
    if (find_places()) look_at_receive = look_at_words;
#endif
}

}  // namespace fermata::lower
