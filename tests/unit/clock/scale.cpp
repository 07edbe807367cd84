// What the exchange costs at scale: production Node and Root, ranks reduced to the messages they would send.
//   clock-scale [--ranks N] [--per-node 64] [--fan-out 0|16] [--raises 8]
// A 2-D process grid: every rank is in WORLD, its row and its column; some ranks are one collective ahead.
// Times are simulated (2 us per message at each end, 1 GB/s, 25 us a hop, serial per daemon); CPU time is
// really measured.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "clock/tree.h"

using namespace fermata::clock;

namespace {

constexpr double kMessage = 2e-6, kByte = 1e-9, kHop = 25e-6;

double cost(const Bytes& m) { return kMessage + kByte * double(m.size()); }

double cpu_seconds() {
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    return double(u.ru_utime.tv_sec) + 1e-6 * double(u.ru_utime.tv_usec);
}

// A daemon in the tree: when it is free again (simulated).
struct Daemon {
    std::unique_ptr<Node> node;
    size_t parent = 0, child_index = 0;  // parent: index in the level above
    std::vector<size_t> children;        // indices in the level below (ranks for the lowest level)
    double free_at = 0;
};

struct Job {
    size_t ranks, columns;
    std::vector<std::vector<Daemon>> levels;  // 0 = node daemons
    std::unique_ptr<Root> root;
    double root_free = 0;
    uint64_t messages = 0, bytes = 0;
    std::vector<double> rank_time;  // when the newest broadcast reached each rank

    void count(const Bytes& m) {
        messages++;
        bytes += m.size();
    }
    uint64_t world() const { return 1; }
    uint64_t row(size_t r) const { return 2 + r / columns; }
    uint64_t column(size_t r) const { return 2 + ranks / columns + 1 + r % columns; }

    // A message from child `child` of daemon (level, at), which leaves the child at time t. Level =
    // levels.size() is the root.
    void up(size_t level, size_t at, size_t child, const Bytes& m, double t) {
        count(m);
        t += kHop;
        if (level == levels.size()) {
            root_free = std::max(root_free, t) + cost(m);
            if (!root->from_child(child, m, 0)) fprintf(stderr, "root: %s\n", root->error().c_str()), exit(1);
            return;
        }
        Daemon& d = levels[level][at];
        d.free_at = std::max(d.free_at, t) + cost(m);
        if (!d.node->from_child(child, m)) fprintf(stderr, "node: %s\n", d.node->error().c_str()), exit(1);
        Bytes out;
        while (d.node->next_up(&out)) {
            d.free_at += cost(out);
            up(level + 1, d.parent, d.child_index, out, d.free_at);
        }
    }
    void down_from(size_t level, size_t at, const Bytes& m, double t) {  // daemon receives m at t
        Daemon& d = levels[level][at];
        d.free_at = std::max(d.free_at, t + kHop) + cost(m);
        if (!d.node->from_parent(m)) fprintf(stderr, "node: %s\n", d.node->error().c_str()), exit(1);
        Bytes out;
        while (d.node->next_down(&out))
            for (size_t c : d.children) {
                d.free_at += cost(out);
                count(out);
                if (level == 0)
                    rank_time[c] = d.free_at + kHop;
                else
                    down_from(level - 1, c, out, d.free_at);
            }
    }
    void broadcast() {
        Bytes m;
        while (root->next_down(&m))
            for (size_t c = 0; c < levels.back().size(); c++) {
                root_free += cost(m);
                count(m);
                down_from(levels.size() - 1, c, m, root_free);
            }
    }
    double last() const { return *std::max_element(rank_time.begin(), rank_time.end()); }
};

}  // namespace

int main(int argc, char** argv) {
    size_t ranks = 1024, per_node = 64, fan_out = 16, raises = 8;
    for (int i = 1; i + 1 < argc; i += 2) {
        std::string a = argv[i];
        size_t value = strtoull(argv[i + 1], nullptr, 10);
        if (a == "--ranks")
            ranks = value;
        else if (a == "--per-node")
            per_node = value;
        else if (a == "--fan-out")
            fan_out = value;
        else if (a == "--raises")
            raises = value;
        else
            return fprintf(stderr,
                           "usage: clock-scale [--ranks N] [--per-node 64] [--fan-out 16|0] [--raises 8]\n"),
                   2;
    }
    Job job;
    job.ranks = ranks;
    job.columns = std::max<size_t>(1, size_t(std::sqrt(double(ranks))));
    job.rank_time.assign(ranks, 0);
    // Levels from the ranks upwards, until the root can take the rest (always one level of node daemons).
    std::vector<size_t> below(ranks);
    for (size_t r = 0; r < ranks; r++) below[r] = r;
    size_t width = per_node;
    do {
        std::vector<Daemon> level((below.size() + width - 1) / width);
        for (size_t c = 0; c < below.size(); c++) {
            if (!job.levels.empty()) {
                job.levels.back()[c].parent = c / width;
                job.levels.back()[c].child_index = c % width;
            }
            level[c / width].children.push_back(c);
        }
        for (Daemon& d : level) d.node = std::make_unique<Node>(d.children.size());
        below.resize(level.size());
        job.levels.push_back(std::move(level));
        width = fan_out;
    } while (fan_out > 1 && below.size() > fan_out);
    for (size_t c = 0; c < job.levels.back().size(); c++) job.levels.back()[c].child_index = c;
    RootOptions options;
    options.stuck_ns = 0;
    job.root = std::make_unique<Root>(job.levels.back().size(), options);

    double cpu = cpu_seconds();
    std::mt19937_64 random(1);
    job.root->begin(1, 0);
    job.broadcast();
    double requested = job.last();

    std::vector<uint8_t> buffer(kMaxMessage);
    for (size_t r = 0; r < ranks; r++) {
        Writer w(buffer.data(), buffer.size());
        w.header(Kind::report, 1).u32(1).u32(3).u32(0);
        for (int c = 0; c < 3; c++) {
            Entry e;
            e.uid = Uid{c == 0 ? job.world() : c == 1 ? job.row(r) : job.column(r)};
            e.target = 100 + (random() % 50 == 0);  // 2 % are one ahead
            e.least_obliged = e.least_entered = e.target;
            e.ranks = 1;
            size_t rows = (ranks + job.columns - 1) / job.columns;
            e.size = uint32_t(c == 0   ? ranks
                              : c == 1 ? std::min(job.columns, ranks - r / job.columns * job.columns)
                                       : rows - (r % job.columns + (rows - 1) * job.columns >= ranks));
            w.entry(e);
        }
        job.up(0, r / per_node, r % per_node, Bytes(buffer.begin(), buffer.begin() + ptrdiff_t(w.size())),
               job.rank_time[r]);
    }
    job.broadcast();
    double known = job.last();

    // Some ranks raise at once, half of them the same collective; then everybody is safe at the newest
    // version.
    for (size_t i = 0; i < raises; i++) {
        size_t r = random() % ranks;
        Writer w(buffer.data(), buffer.size());
        Entry e;
        e.uid = Uid{i % 2 ? job.world() : job.row(r)};
        e.target = 102;
        e.size = uint32_t(ranks);
        w.header(Kind::raise, 1).entry(e);
        job.up(0, r / per_node, r % per_node, Bytes(buffer.begin(), buffer.begin() + ptrdiff_t(w.size())),
               known);
    }
    job.broadcast();
    double raised = job.last();
    for (size_t r = 0; r < ranks; r++) {
        Writer w(buffer.data(), buffer.size());
        w.header(Kind::safe, 1).u32(job.root->version());
        job.up(0, r / per_node, r % per_node, Bytes(buffer.begin(), buffer.begin() + ptrdiff_t(w.size())),
               job.rank_time[r]);
    }
    bool declared = job.root->declared();
    double safe = job.root_free;
    job.broadcast();
    double frozen = job.last();
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf(
        "%zu ranks, %zu node daemons, %zu levels: request at all ranks after %.3f ms, targets %.3f ms, %zu "
        "raises "
        "known +%.3f ms, declared +%.3f ms, frozen +%.3f ms | %llu messages, %.1f MB, targets %llu rows, "
        "root in "
        "%llu out %llu | CPU %.2f s, %ld MB%s\n",
        ranks, job.levels[0].size(), job.levels.size() + 1, requested * 1e3, known * 1e3, raises,
        (raised - known) * 1e3, (safe - raised) * 1e3, (frozen - safe) * 1e3,
        (unsigned long long)job.messages, double(job.bytes) / 1e6,
        (unsigned long long)job.root->counts().rows, (unsigned long long)job.root->counts().in,
        (unsigned long long)job.root->counts().out, cpu_seconds() - cpu, u.ru_maxrss / 1024,
        declared ? "" : " NOT DECLARED");
    return !declared;
}
