// Ranks are the ranks of the program, by the MPI functions that the program's header has handed over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/fault.h"
#include "base/rank.h"

namespace fermata::api {

class Ranks {
  public:
    // Takes both communicators over.
    explicit Ranks(const fermata_mpi& mpi) : mpi_(mpi) {}
    Ranks(const Ranks&) = delete;
    Ranks& operator=(const Ranks&) = delete;
    ~Ranks();

    int rank() const { return mpi_.rank; }
    Rank own() const { return Rank(static_cast<uint32_t>(mpi_.rank)); }
    int size() const { return mpi_.size; }
    bool first() const { return rank() == 0; }

    // Collective; all throw Fault (FERMATA_MPI_FAILED) when MPI says no.
    template <class T>
    void broadcast(T& value, int root = 0) const {
        static_assert(std::is_trivially_copyable_v<T>);
        broadcast(&value, sizeof value, root);
    }
    void broadcast(void* bytes, size_t size, int root = 0) const;
    std::string broadcast_text(const std::string& text, int root = 0) const;
    template <class T>
    std::vector<T> gather_all(const T& mine) const {
        static_assert(std::is_trivially_copyable_v<T>);
        std::vector<T> all(static_cast<size_t>(size()));
        check(mpi_.allgather(mpi_.now, &mine, all.data(), sizeof mine));
        return all;
    }
    // Gives the text of each rank, by rank.
    std::vector<std::string> gather_texts(const std::string& mine) const;
    void exchange(const void* out, size_t out_size, int to, void* in, size_t in_size, int from) const;

    // Every rank says how it fared, and all hear of the first that did not: then all throw its Fault.
    void agree(const Fault& mine) const;
    // Runs `what` here, then agrees.
    template <class What>
    void together(What what) const {
        Fault mine;
        try {
            what();
        } catch (const Fault& fault) {
            mine = fault;
        } catch (const std::exception& error) {
            mine = fault_of(error);
        }
        agree(mine);
    }
    static Fault fault_of(const std::exception& error);

    // Behind the program's back, one at a time: begin, then over() until it is true. Buffers stay.
    void begin_gather(const void* mine, void* all, size_t size) const;
    void begin_broadcast(void* bytes, size_t size) const;
    bool over(bool wait) const;

  private:
    static void check(int code);
    const fermata_mpi mpi_;
};

}  // namespace fermata::api
