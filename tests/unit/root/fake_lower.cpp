// Stands in for lower-openmpi and lower-mpich: a rank without MPI and without an application that speaks to
// the node daemon as the real agent does, with the real rank side of the clock (which has no communicators
// here).
//
//     FAKE_RANK, FAKE_SIZE   from the fake mpiexec
//     FAKE_UNTIL=FILE        the "application" reaches MPI_Finalize when FILE exists
//     FAKE_EXIT=CODE         its exit code
//     FAKE_DIE=PHASE:RANK    SIGKILL to itself when it hears of this phase; FAKE_HANG: never answers there
//     FAKE_REFUSE=RANK, FAKE_SAVE_ERROR=RANK, FAKE_RESTORE_ERROR=RANK, FAKE_FATAL=RANK
//     FAKE_GARBLE=RANK       its clock messages are none
//     FAKE_SLOW_INIT=RANK    this rank stays in MPI_Init until the file FAKE_HOLD_UNTIL exists;
//                            FAKE_SLOW_REBUILD=RANK: so when it makes its objects again,
//                            FAKE_SLOW_LOAD=RANK: when it loads its image,
//                            FAKE_LINGER=RANK: after MPI_Finalize
//     FAKE_ALONE=1           without its daemon it goes on to its end
//     FAKE_LATE=N            messages are on their way for N rounds of the drain
//
// Its image holds a number, counted up by each checkpoint; rank 0 prints it at the end.
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "clock/clock.h"
#include "image/image.h"
#include "tree/agent_link.h"

using namespace fermata;

namespace {

std::string env(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

struct FakeRank {
    tree::AgentConfig config = tree::AgentConfig::from_environment();
    int rank = std::atoi(env("FAKE_RANK").c_str());
    int size = std::atoi(env("FAKE_SIZE").c_str());
    std::string until = env("FAKE_UNTIL");
    uint64_t count = 0;
    int32_t lowest = -1;  // rank of this node, as Save says it
    bool arrived = false, released = false;
    bool may_go = true;  // restart: not before Go
    bool converging = false;
    clock::RankClock* clock = nullptr;

    bool marked(const char* name, const char* phase) const {
        return env(name) == (phase ? fmt::format("{}:{}", phase, rank) : std::to_string(rank));
    }
    // False: this rank is to say nothing in this phase.
    bool plays(const char* phase) const {
        if (marked("FAKE_DIE", phase)) ::kill(::getpid(), SIGKILL);
        return !marked("FAKE_HANG", phase);
    }
    void hold(const char* name) const {
        while (marked(name, nullptr) && !std::filesystem::exists(env("FAKE_HOLD_UNTIL"))) ::usleep(5000);
    }
    std::string file() const { return image::image_name(Rank(static_cast<uint32_t>(rank))); }

    void make_clock() {
        clock::Options options;
        options.me = rank;
        options.world = size;
        clock::Environment around{};
        around.pull = around.progress = around.poke = [](void*) {};
        around.nap = [](void*, std::atomic<uint32_t>*, uint32_t, uint32_t) {};
        around.fence = [](void*) {};
        clock = clock::RankClock::create(options, around, {nullptr, [](void*, size_t bytes) {
                                                               return ::mmap(
                                                                   nullptr, bytes, PROT_READ | PROT_WRITE,
                                                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                                                           }});
    }

    void restore() {
        if (config.restore.empty()) return;
        image::Reader reader(config.restore + "/" + file());
        std::memcpy(&count, reader.blob("count").data(), sizeof count);
    }

    wire::Saved save(const wire::Save& m) {
        wire::Saved answer;
        answer.epoch = m.epoch;
        answer.rank = rank;
        if (marked("FAKE_SAVE_ERROR", nullptr)) {
            answer.error = fmt::format("rank {}: cannot write: no space", rank);
            return answer;
        }
        ++count;
        image::WriteOptions unsynced;
        unsynced.sync = false;
        image::Writer writer(m.directory + "/" + file(),
                             {std::stoull(config.job_id.substr(0, 16), nullptr, 16), m.generation.number(),
                              Rank(static_cast<uint32_t>(rank)), static_cast<uint32_t>(size)},
                             unsynced);
        writer.blob("count", &count, sizeof count);
        image::Summary summary = writer.finish();
        answer.bytes = summary.bytes;
        answer.checksum = summary.checksum.hex();
        return answer;
    }

    void handle(tree::AgentLink& link, const wire::Message& message) {
        if (auto* m = std::get_if<wire::Clock>(&message)) {
            clock->inbox(m->bytes.data(), m->bytes.size());
        } else if (auto* m = std::get_if<wire::Begin>(&message)) {
            if (marked("FAKE_REFUSE", nullptr))
                link.send(wire::Refuse{m->epoch, "inside MPI_Comm_spawn"});
            else
                converging = plays("begin");
        } else if (auto* m = std::get_if<wire::Freeze>(&message)) {
            converging = false;
            clock->freeze();
            if (plays("freeze")) link.send(wire::Frozen{m->epoch, 10});
        } else if (auto* m = std::get_if<wire::Drain>(&message)) {
            uint64_t late = m->round <= static_cast<uint32_t>(std::atoi(env("FAKE_LATE").c_str())) ? 1 : 0;
            if (plays("drain")) link.send(wire::Drained{m->epoch, m->round, 10, 10 - late, late});
        } else if (auto* m = std::get_if<wire::Save>(&message)) {
            // With files of several images only the way of their places is played.
            lowest = m->lowest;
            if (m->options.find("layout=") != std::string::npos)
                link.send(wire::Sized{m->epoch, rank, 4096});
            else if (plays("save"))
                link.send(save(*m));
        } else if (auto* m = std::get_if<wire::Placed>(&message)) {
            link.send(wire::Warning{
                fmt::format("rank {} on a node from rank {} on begins at {}", rank, lowest, m->begin),
                m->epoch});
            link.send(wire::Saved{m->epoch, rank, 4096, std::string(32, '0'), "", 0, {}});
        } else if (auto* m = std::get_if<wire::Resume>(&message)) {
            clock->resume();
            if (plays("resume")) link.send(wire::Resumed{m->epoch});
        } else if (auto* m = std::get_if<wire::Cancel>(&message)) {
            converging = false;
            clock->resume();
            link.send(wire::Resumed{m->epoch});
        } else if (std::holds_alternative<wire::Query>(message)) {
            link.send(wire::Diagnosis{fmt::format("main thread: MPI_Recv from rank {}", (rank + 1) % size)});
        } else if (std::holds_alternative<wire::FinalizeReleased>(message)) {
            released = true;
        } else if (std::holds_alternative<wire::Go>(message)) {
            may_go = true;
            (void)plays("go");
        }
    }

    int run() {
        tree::AgentLink::ensure_daemon(config);
        tree::AgentLink link(config);
        link.send(wire::Starting{rank, config.job_id});
        hold("FAKE_SLOW_INIT");
        make_clock();
        if (!config.restore.empty()) {
            link.send(wire::Phase{wire::RestartPhase::load, rank});
            hold("FAKE_SLOW_LOAD");
        }
        restore();
        link.send(link.hello(rank, size, "openmpi", "Fake MPI 1.0"));
        if (!config.restore.empty()) {
            may_go = false;
            link.send(wire::Phase{wire::RestartPhase::rebuild, rank});
            hold("FAKE_SLOW_REBUILD");
            bool good = !marked("FAKE_RESTORE_ERROR", nullptr);
            link.send(wire::Restored{good, good ? "" : fmt::format("rank {}: no memory", rank), 1,
                                     static_cast<int32_t>(ExitCode::damaged)});
        }
        if (marked("FAKE_FATAL", nullptr)) link.send(wire::Fatal{"error: MPI_Abort was called by rank 1", 7});
        if (config.restore.empty() && rank == 0) {
            std::printf("started\n");
            std::fflush(stdout);
        }
        while (!link.closed()) {
            pollfd fd{link.fd(), POLLIN, 0};
            ::poll(&fd, 1, 2);
            while (auto message = link.receive()) handle(link, *message);
            if (converging) {
                timespec now;
                clock_gettime(CLOCK_MONOTONIC, &now);
                clock->poll(static_cast<uint64_t>(now.tv_sec) * 1000000000 +
                            static_cast<uint64_t>(now.tv_nsec));
                static char buffer[1 << 16];
                while (size_t n = clock->outbox(buffer, sizeof buffer)) {
                    if (marked("FAKE_GARBLE", nullptr)) std::memset(buffer, 0xa5, n);
                    auto* at = reinterpret_cast<const std::byte*>(buffer);
                    link.send(wire::Clock{{at, at + n}});
                }
            }
            std::error_code ignored;
            if (may_go && !arrived && std::filesystem::exists(until, ignored)) {
                arrived = true;
                link.send(wire::ArrivedFinalize{});
            }
            if (released) {
                if (rank == 0) std::printf("finished, count %d\n", static_cast<int>(count));
                std::fflush(stdout);
                hold("FAKE_LINGER");
                return std::atoi(env("FAKE_EXIT").c_str());
            }
        }
        return go_on_alone();
    }

    // The daemon is gone.
    int go_on_alone() const {
        if (env("FAKE_ALONE").empty()) return 1;
        while (!std::filesystem::exists(until)) ::usleep(5000);
        return std::atoi(env("FAKE_EXIT").c_str());
    }
};

}  // namespace

int main() {
    start_log("fake");
    try {
        return FakeRank().run();
    } catch (const std::exception& error) {
        say(std::string("error: ") + error.what());
        return 1;
    }
}
