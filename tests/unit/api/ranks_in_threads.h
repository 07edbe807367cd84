// RanksInThreads runs a function as several ranks, threads of this process, with an MPI of its own: the
// functions that fermata_open_with() asks for. So a test saves and restores by libfermata without mpiexec.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fermata/fermata_core.h"

namespace fermata::api {

class RanksInThreads {
  public:
    // Calls run(rank, mpi) in a thread for each rank; returns when all have returned.
    static void run(int size, const std::function<void(int rank, const fermata_mpi& mpi)>& run) {
        Team now{size}, behind{size};
        std::vector<std::thread> threads;
        for (int rank = 0; rank < size; ++rank)
            threads.emplace_back([&, rank] { run(rank, mpi_of(rank, now, behind)); });
        for (std::thread& thread : threads) thread.join();
    }

  private:
    // What the ranks have said, by the number of the call and who said it; a call takes what it needs from
    // it.
    struct Team {
        int size;
        std::mutex lock{};
        std::condition_variable said{};
        std::map<std::pair<uint64_t, int>, std::string> words{};            // of collective calls
        std::map<std::pair<int, int>, std::deque<std::string>> messages{};  // from, to

        void say(uint64_t call, int rank, const void* bytes, int64_t size_of) {
            std::lock_guard guard(lock);
            words[{call, rank}] = text(bytes, size_of);
            said.notify_all();
        }
        void hear(uint64_t call, int rank, void* to) {
            std::unique_lock guard(lock);
            said.wait(guard, [&] { return words.count({call, rank}) != 0; });
            copy(words[{call, rank}], to);
        }
        bool has(uint64_t call, int rank) {
            std::lock_guard guard(lock);
            return words.count({call, rank}) != 0;
        }
        static std::string text(const void* bytes, int64_t size_of) {
            return {static_cast<const char*>(bytes), static_cast<size_t>(size_of)};
        }
        static void copy(const std::string& from, void* to) {
            if (!from.empty()) std::memcpy(to, from.data(), from.size());
        }
    };

    // A rank's communicator. `calls` numbers its collective calls: all ranks make the same ones.
    struct Comm {
        Team& team;
        int rank;
        uint64_t calls = 0;
        // Of the call behind the program's back: whose words come where.
        struct Wanted {
            int rank;
            char* to;
        };
        std::vector<Wanted> wanted{};
    };
    static Comm& comm(void* where) { return *static_cast<Comm*>(where); }

    static int bcast(void* where, void* bytes, int64_t size, int root) {
        Comm& c = comm(where);
        const uint64_t call = c.calls++;
        if (c.rank == root)
            c.team.say(call, root, bytes, size);
        else
            c.team.hear(call, root, bytes);
        return 0;
    }
    static int allgather(void* where, const void* mine, void* all, int64_t size) {
        Comm& c = comm(where);
        const uint64_t call = c.calls++;
        c.team.say(call, c.rank, mine, size);
        for (int r = 0; r < c.team.size; ++r) c.team.hear(call, r, static_cast<char*>(all) + r * size);
        return 0;
    }
    static int exchange(void* where, const void* out, int64_t out_size, int to, void* in, int64_t in_size,
                        int from) {
        Team& team = comm(where).team;
        const int me = comm(where).rank;
        std::unique_lock guard(team.lock);
        if (to >= 0 && out_size > 0) {
            team.messages[{me, to}].push_back(Team::text(out, out_size));
            team.said.notify_all();
        }
        if (from < 0 || in_size == 0) return 0;
        auto& queue = team.messages[{from, me}];
        team.said.wait(guard, [&] { return !queue.empty(); });
        Team::copy(queue.front(), in);
        queue.pop_front();
        return 0;
    }
    static int begin_gather(void* where, const void* mine, void* all, int64_t size) {
        Comm& c = comm(where);
        c.wanted.clear();
        c.team.say(c.calls, c.rank, mine, size);
        for (int r = 0; r < c.team.size && c.rank == 0; ++r)
            c.wanted.push_back({r, static_cast<char*>(all) + r * size});
        return 0;
    }
    static int begin_bcast(void* where, void* bytes, int64_t size) {
        Comm& c = comm(where);
        c.wanted.clear();
        if (c.rank == 0)
            c.team.say(c.calls, 0, bytes, size);
        else
            c.wanted.push_back({0, static_cast<char*>(bytes)});
        return 0;
    }
    static int test(void* where, int wait, int* over) {
        Comm& c = comm(where);
        *over = 1;
        for (const Comm::Wanted& one : c.wanted)
            if (!wait && !c.team.has(c.calls, one.rank)) return *over = 0;
        for (const Comm::Wanted& one : c.wanted) c.team.hear(c.calls, one.rank, one.to);
        ++c.calls;
        return 0;
    }
    static void release(void* where) { delete static_cast<Comm*>(where); }

    static fermata_mpi mpi_of(int rank, Team& now, Team& behind) {
        fermata_mpi mpi{};
        mpi.version = FERMATA_MPI_VERSION;
        mpi.rank = rank;
        mpi.size = now.size;
        mpi.now = new Comm{now, rank};
        mpi.behind = new Comm{behind, rank};
        mpi.library = "threads";
        mpi.bcast = bcast;
        mpi.allgather = allgather;
        mpi.exchange = exchange;
        mpi.begin_gather = begin_gather;
        mpi.begin_bcast = begin_bcast;
        mpi.test = test;
        mpi.release = release;
        return mpi;
    }
};

}  // namespace fermata::api
