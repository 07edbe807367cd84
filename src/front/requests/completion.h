// Parts that the waits and tests of the translated and the careful tier share: the requests of an array, and
// one look at one.
#pragma once

#include "front/requests/operations.h"

namespace fermata::front {

// Arrays of any length: on the stack when short.
template <typename T, int N>
class Temporary {
  public:
    explicit Temporary(int n) noexcept
        : data_(n <= N ? own() : static_cast<T*>(fm_alloc(sizeof(T) * static_cast<size_t>(n)))) {}
    ~Temporary() {
        if (data_ != own()) fm_free(data_);
    }
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;
    T& operator[](int i) { return data_[i]; }
    T* data() { return data_; }

  private:
    T* own() { return reinterpret_cast<T*>(room_); }
    alignas(T) char room_[sizeof(T) * N];
    T* data_;
};
constexpr int kOnStack = 64;

// May the library's own waits and tests of many have this one? Requests of files and windows are asked one by
// one, because MPICH 4.0.2's MPI_Testall ends those of files twice.
__attribute__((always_inline)) inline bool library_may_wait(const RequestObject* r) noexcept {
    return r->state == State::active && r->real != 0 && r->what != What::sendrecv &&
           r->what != What::foreign && r->what != What::of_file;
}

// Virtual requests of an array; null where MPI ignores the entry's handle. False: garbage among them.
bool look_up(int n, const mpi::Request* handles, RequestObject** out) noexcept;
// Where errors of a request are raised. Read it before the request is consumed.
Comm comm_of(const RequestObject* r) noexcept;
// One look at a request in the tier that the thread is in; true when complete and allowed to be told.
bool test_one(Call& call, RequestObject* r) noexcept;
// The end of a call whose requests are all complete and may be told.
int consume_all(Call& call, int count, mpi::Request* requests, RequestObject* const* items,
                Status* statuses) noexcept;
// Before a test, which may fail: it pulls, so that senders to a polling rank get on, and tells the clock.
void before_test(Call& call) noexcept;

}  // namespace fermata::front
