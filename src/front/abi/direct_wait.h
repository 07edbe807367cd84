// Waits and tests of messages, from the application to the library: see direct_message.h, which comes first.
#pragma once

#include "front/abi/direct_message.h"

namespace fermata::abi {

// A request for a message that can be waited for in place: with the statuses of the library and one branch at
// its end. Null for all others.
__attribute__((always_inline)) inline front::RequestObject* direct_request_of(
    const front::HandleTable& requests, A_Request handle) noexcept {
    auto* const r = static_cast<front::RequestObject*>(request_of(requests, handle));
    if (__builtin_expect(r == nullptr || r->real == 0, 0)) return nullptr;
    const uint32_t head = front::word_of(r);
    if (head == front::head_word(What::send, front::State::active)) return r;
    if (head == front::head_word(What::recv, front::State::active)) return r->world >= 0 ? r : nullptr;
    if (head == front::head_word(What::send, front::State::active, front::kPersistent)) return r;
    return head == front::head_word(What::recv, front::State::active, front::kPersistent) && r->world >= 0
               ? r
               : nullptr;
}
__attribute__((always_inline)) inline void end_request(const DirectMessage& call, front::RequestObject* r,
                                                       A_Request* handle) {
    if (__builtin_expect(call.ended(r), 1)) *handle = out_Request(FM_REQUEST_NULL);
}
// False: what is left to do is the translated tier's.
__attribute__((always_inline)) inline bool end_message(const DirectMessage& call,
                                                       DirectMessage::TestFunction test,
                                                       front::RequestObject* r, A_Request* handle,
                                                       A_Status* status) {
    const int rc = call.wait(test, front::real_request(r), status, [&] { return r->world; });
    if (__builtin_expect(rc != 0, 0)) {
        if (rc > 0) DirectMessage::wait_failed(call.record(), r, status_of_failed(status), rc);
        return false;
    }
    end_request(call, r, handle);
    return true;
}

FRONT_API int PMPI_Wait(A_Request* request, A_Status* status) {
    if (__builtin_expect(request == nullptr, 0) || !is_place(status)) return Wait_translated(request, status);
    DirectMessage call("MPI_Wait", DirectMessage::kNotCarefulNorWatched);
    if (!call) return Wait_translated(request, status);
    front::RequestObject* const r = direct_request_of(front::table_of(Kind::request), *request);
    if (__builtin_expect(r == nullptr, 0) || !front::library_is_of(kFamily)) {
        call.give_up();
        return Wait_translated(request, status);
    }
    if (status == kStatusIgnore && ended_when_sent(r->real)) {
        end_request(call, r, request);
    } else if (__builtin_expect(!end_message(call, front.direct.Test, r, request, status), 0)) {
        call.end();
        return Wait_translated(request, status);
    }
    return call.end();
}

// Waits for the requests that the direct tier has left of an array, whose first `ended` have ended well.
FERMATA_COLD int waitall_rest(int count, int ended, A_Request* requests, A_Status* statuses) {
    const bool ignored = statuses == kStatusIgnore;
    const int rc = Waitall_translated(count - ended, requests == nullptr ? nullptr : requests + ended,
                                      ignored ? statuses : statuses + ended);
    if (rc == out_errclass(FM_ERR_IN_STATUS) && !ignored)
        for (int i = 0; i < ended; i++) statuses[i].error = 0;
    return rc;
}
template <bool ignored>
__attribute__((always_inline)) inline int waitall(int count, A_Request* requests, A_Status* statuses) {
    DirectMessage call("MPI_Waitall", DirectMessage::kNotCarefulNorWatched);
    if (!call) return waitall_rest(count, 0, requests, statuses);
    if (!front::library_is_of(kFamily)) {
        call.give_up();
        return waitall_rest(count, 0, requests, statuses);
    }
    DirectMessage::TestFunction test = front.direct.Test;
    A_Request *next = requests, *const end = requests + count;
    for (;;) {
        front::RequestObject* const r = direct_request_of(front::table_of(Kind::request), *next);
        if (__builtin_expect(r != nullptr, 1)) {
            if (ignored && ended_when_sent(r->real)) {
                end_request(call, r, next);
            } else {
                if (!end_message(call, test, r, next, ignored ? kStatusIgnore : statuses + (next - requests)))
                    break;
                test = front.direct.TestAnother;
            }
        } else if (!ignored || *next != out_Request(FM_REQUEST_NULL)) {
            break;
        }
        if (++next == end) return call.end();
    }
    call.end();
    return waitall_rest(count, static_cast<int>(next - requests), requests, statuses);
}
FERMATA_COLD int waitall_with_statuses(int count, A_Request* requests, A_Status* statuses) {
    if (!is_place(statuses)) return waitall_rest(count, 0, requests, statuses);
    return waitall<false>(count, requests, statuses);
}
FRONT_API int PMPI_Waitall(int count, A_Request* requests, A_Status* statuses) {
    if (__builtin_expect(count <= 0 || requests == nullptr, 0))
        return waitall_rest(count, 0, requests, statuses);
    if (statuses != kStatusIgnore) return waitall_with_statuses(count, requests, statuses);
    return waitall<true>(count, requests, statuses);
}

FRONT_API int PMPI_Test(A_Request* request, int* flag, A_Status* status) {
    if (__builtin_expect(request == nullptr || flag == nullptr, 0) || !is_place(status))
        return Test_translated(request, flag, status);
    DirectMessage call("MPI_Test", DirectMessage::kNotCarefulNorWatched);
    if (!call) return Test_translated(request, flag, status);
    front::RequestObject* const r = direct_request_of(front::table_of(Kind::request), *request);
    if (__builtin_expect(r == nullptr, 0) || !front::library_is_of(kFamily)) {
        call.give_up();
        return Test_translated(request, flag, status);
    }
    const int rc = call.below(front.direct.Test, front::real_request(r), flag, static_cast<void*>(status));
    if (__builtin_expect(rc != 0, 0)) {
        DirectMessage::test_failed(call.record(), r, status_of_failed(status), rc);
        call.end();
        return Test_translated(request, flag, status);
    }
    call.up();
    if (*flag != 0) end_request(call, r, request);
    return call.end();
}

// One of many, by one call of the library: its number, or one of these.
enum NotOne : int {
    kNoneEnded = -1,  // and `stop` says so
    kNotHere = -2,    // it is the translated tier's
};
constexpr int kManyAtOnce = 64;  // as many as the binding has room for without the heap
__attribute__((always_inline)) inline int end_one(const DirectMessage& call, int count, A_Request* requests,
                                                  A_Status* status, const volatile uint32_t* stop) {
    RealRequest reals[kManyAtOnce];
    bool active = false;
    for (int i = 0; i < count; i++) {
        reals[i] = {};
        if (requests[i] == out_Request(FM_REQUEST_NULL)) continue;
        front::RequestObject* const r = direct_request_of(front::table_of(Kind::request), requests[i]);
        if (__builtin_expect(r == nullptr, 0)) return kNotHere;
        if (!active && status == kStatusIgnore && ended_when_sent(r->real)) {
            end_request(call, r, &requests[i]);
            return i;
        }
        reals[i] = static_cast<RealRequest>(r->real);
        active = true;
    }
    if (__builtin_expect(!active, 0)) return kNotHere;
    int index = -1;
    const int rc = call.below(front.table->WaitAnyInPlace, count, static_cast<RealRequest*>(reals), &index,
                              static_cast<void*>(status), stop);
    call.up();
    if (rc < 0) return kNoneEnded;
    if (__builtin_expect(index < 0 || index >= count, 0)) return kNotHere;
    front::RequestObject* const r = direct_request_of(front::table_of(Kind::request), requests[index]);
    if (__builtin_expect(rc != 0, 0)) {
        DirectMessage::wait_failed(call.record(), r, status_of_failed(status), rc);
        return kNotHere;
    }
    end_request(call, r, &requests[index]);
    return index;
}
FRONT_API int PMPI_Waitany(int count, A_Request* requests, int* index, A_Status* status) {
    if (__builtin_expect(count <= 0 || count > kManyAtOnce || requests == nullptr || index == nullptr, 0) ||
        !is_place(status))
        return Waitany_translated(count, requests, index, status);
    DirectMessage call("MPI_Waitany", DirectMessage::kNotCarefulNorWatched);
    if (!call) return Waitany_translated(count, requests, index, status);
    int found = kNotHere;
    if (front::library_is_of(kFamily)) {
        call.record()->waiting_for = front::kAnyOfMany;
        found = end_one(call, count, requests, status, &front.attention);
    }
    call.end();
    if (__builtin_expect(found < 0, 0)) return Waitany_translated(count, requests, index, status);
    *index = found;
    return 0;
}
FRONT_API int PMPI_Testany(int count, A_Request* requests, int* index, int* flag, A_Status* status) {
    if (__builtin_expect(
            count <= 0 || count > kManyAtOnce || requests == nullptr || index == nullptr || flag == nullptr,
            0) ||
        !is_place(status))
        return Testany_translated(count, requests, index, flag, status);
    DirectMessage call("MPI_Testany", DirectMessage::kNotCarefulNorWatched);
    if (!call) return Testany_translated(count, requests, index, flag, status);
    static constexpr uint32_t once = 1;
    const int found =
        front::library_is_of(kFamily) ? end_one(call, count, requests, status, &once) : kNotHere;
    call.end();
    if (__builtin_expect(found == kNotHere, 0))
        return Testany_translated(count, requests, index, flag, status);
    *flag = found >= 0 ? 1 : 0;
    *index = found >= 0 ? found : FM_UNDEFINED;
    return 0;
}

#undef FERMATA_COLD

}  // namespace fermata::abi
