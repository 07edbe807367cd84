// A job's journal, which may be cut off anywhere, or somebody else's.
#include "fuzz.h"
#include "journal/history.h"
#include "journal/reader.h"

namespace fermata::fuzz {
namespace {

// What was understood says the same when it is written and read again.
Verdict run_journal(Input input) {
    journal::Contents contents = journal::parse({reinterpret_cast<const char*>(input.data()), input.size()});
    for (const journal::Event& event : contents.events) {
        const std::string line = journal::to_line(event);
        require(line.size() <= journal::kMostLine && line.find('\n') == line.size() - 1,
                "a line that is none");
        auto once = journal::parse_line(line.substr(0, line.size() - 1));
        require(once && once->kind == event.kind && once->job == event.job && once->time_ms == event.time_ms,
                "an event is not what its line says");
        const std::string again = journal::to_line(*once);
        auto twice = journal::parse_line(again.substr(0, again.size() - 1));
        require(twice && twice->kind == event.kind, "a line changes whenever it is read");
        const std::string said = journal::sentence(event);
        require(said.find('\n') == std::string::npos && said.find('\x1b') == std::string::npos,
                "a sentence moves the cursor");
    }
    size_t events = 0;
    for (const journal::History& job : journal::histories(contents.events)) {
        events += job.events;
        for (const journal::Life& life : job.lives)
            for (const journal::CheckpointTaken& one : life.checkpoints)
                for (const journal::RanksTook::Phase& phase : one.took.phases)
                    require(phase.seconds.size() == one.took.blocks && phase.excess() >= 0 &&
                                phase.slowest.size() == one.took.blocks,
                            "times of blocks that are none");
        require(!(job.running() < 0), "ranks that ran for less than no time");
        for (size_t i = 0; i <= job.lives.size(); ++i)
            require(job.lost_after(i) >= 0, "less than no work was lost");
    }
    require(events == contents.events.size(), "an event of no job");
    return contents.events.empty() || contents.not_ours > 0 ? Verdict::refused : Verdict::accepted;
}

std::vector<Bytes> journal_seeds() {
    std::string text;
    const nlohmann::json fields[] = {
        {{"name", "solver-1"},
         {"ranks", 4},
         {"restored", "gen-000002"},
         {"host", "a"},
         {"command", {"./a", "b"}}},
        {{"seconds", 0.7}},
        {{"origin", "command"}, {"stop", true}},
        {{"phase", "converge"}, {"seconds", 2.5}, {"last", "b"}, {"waits", "rank 3: MPI_Recv"}},
        {{"ok", true}, {"generation", "gen-000003"}, {"bytes", 1ull << 40}, {"seconds", 1e3}},
        {{"ok", true}, {"generation", "gen-000003"}, {"level", "buddy"}, {"seconds", 2}},
        {{"ok", true}, {"seconds", 0.1}},
        {{"why", "rank 1 (pid 5 on b) is gone"}},
        {{"code", 137}, {"why", "killed"}},
        {{"number", 2}, {"from", "gen-000003"}, {"pause", 1}},
        {{"why", "the same failure"}},
    };
    int kind = 0;
    for (const nlohmann::json& one : fields)
        text +=
            journal::to_line({static_cast<journal::Kind>(kind++), 0x1234567890abcdef, 1764147600123, one});
    text += journal::to_line(
        {journal::Kind::ranks,
         0x1234567890abcdef,
         1764147600123,
         {{"generation", "gen-000003"},
          {"ranks", 3},
          {"blocks", 3},
          {"phases",
           {{"save", {{"seconds", {1.5, 0.1, 2}}, {"slowest", {0, 1, 2}}, {"mean", 1.2}, {"host", "b"}}}}}}});
    return {Bytes(text.begin(), text.end())};
}

}  // namespace

const Target journal{"journal", run_journal, nullptr, journal_seeds, nullptr};

}  // namespace fermata::fuzz
