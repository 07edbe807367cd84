// scale-machines plays a whole job in one process: the production state machines of the root and of every
// node daemon (Members, RollCall, Roster, Orders, Relay, Tally, both clocks, wire's encoder and decoder,
// handshakes, the manifest), joined by a simulated network. Each daemon has a core of its own: what a handler
// takes of this process's CPU passes on the clock of that daemon alone.
//
//     scale-machines RANKS NODES [RADIX] [LATENCY_US]      one line of JSON
//
// The ranks are not simulated: they answer at once, and what their daemon does with the answers is timed.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <queue>

#include "base/error.h"
#include "clock/messages.h"
#include "clock/tree.h"
#include "store/store.h"
#include "tree/joined.h"
#include "tree/members.h"
#include "tree/relay.h"
#include "tree/roster.h"
#include "wire/auth.h"
#include "wire/frame.h"

using namespace fermata;

namespace {

constexpr int kRootAt = -1;
constexpr double kBytesPerSecond = 1e9, kPartsSeconds = 0.020;  // as src/noded/branch.cpp has it
constexpr double kDoorsPerSecond = 3200;                        // as src/tree/guests.cpp lets in
double latency = 50e-6;

double cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Of one process of the job.
struct Core {
    double free_at = 0;  // virtual seconds
    double used = 0;     // CPU
    uint64_t in = 0, out = 0, bytes_in = 0, bytes_out = 0;
};

using Frame = std::shared_ptr<const wire::Bytes>;
struct Event {
    double at = 0;
    uint64_t number = 0;
    int to = kRootAt, from = kRootAt;
    Frame frame;  // null: a timer
    bool operator<(const Event& other) const {
        return at != other.at ? at > other.at : number > other.number;
    }
};

class Network {
  public:
    void send(double now, Core& sender, int from, int to, const Frame& frame) {
        const size_t bytes = frame->size() + wire::kTagSize;
        ++sender.out;
        sender.bytes_out += bytes;
        double& last = arrived_[{from, to}];  // connections keep their order
        last = std::max(last, now + latency + static_cast<double>(bytes) / kBytesPerSecond);
        put({last, 0, to, from, frame});
    }
    void wake(double at, int who) { put({at, 0, who, who, nullptr}); }
    bool empty() const { return events_.empty(); }
    Event next() {
        Event event = events_.top();
        events_.pop();
        return event;
    }

  private:
    void put(Event event) {
        event.number = next_++;
        events_.push(std::move(event));
    }
    std::priority_queue<Event> events_;
    std::map<std::pair<int, int>, double> arrived_;
    uint64_t next_ = 0;
};

wire::Message message_of(const wire::Bytes& frame) {
    auto message = wire::unwrapped(frame);
    if (!message) fail("a frame that cannot be read");
    return std::move(*message);
}

// ---- a node daemon with its ranks

class Daemon {
  public:
    Daemon(int number, int32_t first, int32_t ranks, int32_t size)
        : number_(number), first_(first), ranks_(ranks), size_(size) {}
    Core core;
    bool timer = false;  // one is under way

    struct Out {
        int to;  // Relay::kUp, or a child
        wire::Message message;
    };
    void start() {
        std::vector<wire::Hello> hellos;
        for (int32_t i = 0; i < ranks_; ++i)
            hellos.push_back({"job",
                              first_ + i,
                              size_,
                              1000 + i,
                              fmt::format("node{:05}", number_),
                              "openmpi",
                              "no MPI",
                              {}});
        relay_.own(tree::joined(std::move(hellos)));
    }
    void hear(int from, const wire::Message& message, double now) {
        if (from == tree::Relay::kUp)
            from_above(message);
        else if (auto* attach = std::get_if<wire::Attach>(&message))
            relay_.child(*attach);
        else if (auto* clock = std::get_if<wire::Clock>(&message))
            must(clock_->from_child(clock_child_.at(from), wire::plain(clock->bytes)));
        else
            relay_.from_child(from, message);
        pump();
        hand_up(now);
    }
    void hand_up(double now) {
        const bool time = now - parts_told_ >= kPartsSeconds;
        if (time && relay_.tally().parts_wait()) parts_told_ = now;
        relay_.hand_up(static_cast<uint32_t>(ranks_), time);
        drain();
    }
    bool waits() const { return relay_.tally().parts_wait(); }
    std::vector<Out> take_out() { return std::exchange(out_, {}); }

  private:
    static void must(bool good) {
        if (!good) fail("the protocol broke");
    }
    void drain() {
        for (tree::Relay::Out& one : relay_.take_out()) out_.push_back({one.to, std::move(one.message)});
    }
    void from_above(const wire::Message& message) {
        if (auto* parent = std::get_if<wire::Parent>(&message)) {
            relay_.placed(*parent);
            if (!parent->way.empty()) relay_.above();
        } else if (auto* roll = std::get_if<wire::Roll>(&message)) {
            relay_.roll(*roll);
        } else if (auto* order = std::get_if<wire::Order>(&message)) {
            auto inner = relay_.order(*order);
            drain();
            if (inner) obey(*inner);
        } else if (auto* clock = std::get_if<wire::Clock>(&message)) {
            must(clock_->from_parent(wire::plain(clock->bytes)));
        }
    }
    void obey(const wire::Message& message) {
        relay_.tally().ask(message);
        if (std::holds_alternative<wire::Begin>(message)) begin_clock();
        answers([&](int32_t i) -> std::optional<wire::Message> {
            if (auto* m = std::get_if<wire::Freeze>(&message)) return wire::Frozen{m->epoch, 100};
            if (auto* m = std::get_if<wire::Drain>(&message))
                return wire::Drained{m->epoch, m->round, 100, 100};
            if (auto* m = std::get_if<wire::Save>(&message))
                return wire::Saved{m->epoch, first_ + i, 4096, std::string(32, 'a'), "", 10, {}};
            if (auto* m = std::get_if<wire::Resume>(&message)) return wire::Resumed{m->epoch};
            return std::nullopt;
        });
    }
    void begin_clock() {
        size_t children = static_cast<size_t>(ranks_);
        clock_child_.clear();
        for (auto& [child, ranks] : relay_.children())
            if (ranks > 0) clock_child_[child] = children++;
        clock_ = std::make_unique<clock::Node>(children);
    }
    // What the ranks say is made while this core's time stands still, then read as from their sockets.
    template <class Make>
    void answers(const Make& make) {
        const double pause = cpu_seconds();
        wire::Bytes said;
        for (int32_t i = 0; i < ranks_; ++i)
            if (auto message = make(i)) {
                wire::Bytes frame = wire::encode(*message);
                said.insert(said.end(), frame.begin(), frame.end());
            }
        core.used -= cpu_seconds() - pause;
        if (said.empty()) return;
        wire::Decoder decoder;
        decoder.feed(said.data(), said.size());
        for (int32_t i = 0; auto message = decoder.next(); ++i) {
            if (auto* clock = std::get_if<wire::Clock>(&*message))
                must(clock_->from_child(static_cast<size_t>(i), wire::plain(clock->bytes)));
            else
                relay_.tally().take(i, *message);
        }
    }
    void pump() {
        if (!clock_) return;
        clock::Bytes bytes;
        for (bool more = true; more;) {
            more = false;
            while (clock_->next_down(&bytes)) {
                more = true;
                wire::Clock down{wire::packed(bytes)};
                for (auto& [child, at] : clock_child_) out_.push_back({child, down});
                answers([&](int32_t i) { return answer_of(down, i); });
            }
        }
        while (clock_->next_up(&bytes)) out_.push_back({tree::Relay::kUp, wire::Clock{wire::packed(bytes)}});
    }
    // As bench/scale/agents.cpp: loops of MPI_Allreduce on the world, some ranks a call behind.
    std::optional<wire::Message> answer_of(const wire::Clock& message, int32_t i) const {
        clock::Reader in(message.bytes.data(), message.bytes.size());
        clock::Header head;
        if (!in.header(&head)) return std::nullopt;
        uint8_t buffer[256];
        clock::Writer out(buffer, sizeof buffer);
        if (head.kind == clock::Kind::intent) {
            clock::Entry world;
            world.uid = clock::Uid{1};
            world.target = 1000;
            world.least_obliged = world.least_entered = (first_ + i) % 7 == 0 ? 999 : 1000;
            world.ranks = 1;
            world.size = static_cast<uint32_t>(size_);
            out.header(clock::Kind::report, head.epoch).u32(1).u32(1).u32(0).entry(world);
        } else if (head.kind == clock::Kind::targets && in.u32() != 0) {
            out.header(clock::Kind::safe, head.epoch).u32(0);
        } else {
            return std::nullopt;
        }
        auto* at = reinterpret_cast<const std::byte*>(buffer);
        return wire::Clock{{at, at + out.size()}};
    }

    const int number_;
    const int32_t first_, ranks_, size_;
    tree::Relay relay_;
    std::unique_ptr<clock::Node> clock_;
    std::map<int, size_t> clock_child_;
    double parts_told_ = -1;
    std::vector<Out> out_;
};

// ---- the root

class Root {
  public:
    Root(int32_t size, size_t radix) : size_(static_cast<uint32_t>(size)), members_(radix, {}) {
        calls_.begin(1);
    }
    Core core;

    struct Out {
        int to;
        wire::Message message;
    };
    struct Step {
        std::string name;
        double at;
    };
    std::vector<Step> steps;  // when each began

    void hear(int from, const wire::Message& message, double now) {
        if (auto* hello = std::get_if<wire::NodeHello>(&message)) {
            register_node(*hello);
        } else if (auto* here = std::get_if<wire::Here>(&message)) {
            if (!calls_.here(from, *here)) return;
            for (int node : here->nodes) members_.here(node);
            for (const wire::Group& group : here->groups)
                if (std::string why = roster_.join(group.node, group); !why.empty()) fail("{}", why);
        } else if (auto* clock = std::get_if<wire::Clock>(&message)) {
            if (!clock_->from_child(clock_child_.at(from), wire::plain(clock->bytes),
                                    static_cast<uint64_t>(now * 1e9)))
                fail("the protocol broke: {}", clock_->error());
        } else {
            tally_.take(from, message);
        }
        go_on(now);
    }
    std::vector<Out> take_out() { return std::exchange(out_, {}); }
    bool done() const { return steps.back().name == "end"; }

  private:
    void enter(const char* name, double now) { steps.push_back({name, now}); }
    void question(const wire::Message& message) {
        tally_.ask(message);
        wire::Order order{++orders_given_, wire::encode(message)};
        orders_.add(order);
        for (auto& [child, ranks] : calls_.children()) out_.push_back({child, order});
    }
    void register_node(const wire::NodeHello& hello) {
        tree::NodeInfo info;
        info.host = hello.host;
        info.pid = hello.pid;
        info.addresses = hello.addresses;
        const int node = members_.arrive(std::move(info), 0);
        wire::Parent parent{node, orders_.newest(), members_.way(node), 5000, 30000};
        out_.push_back({node, parent});
        if (!parent.way.empty()) return;
        calls_.came(node, 0);
        if (calls_.call(node)) out_.push_back({node, wire::Roll{calls_.number()}});
    }
    // The phases of Root::take_checkpoint.
    void go_on(double now) {
        const auto& heard = tally_.answers();
        const std::string phase = steps.empty() ? "" : steps.back().name;
        if (phase.empty()) {
            enter("start", 0);
        } else if (phase == "start") {
            if (!roster_.complete() || !members_.whole()) return;
            enter("targets", now);
            for (auto& [node, place] : roster_.places())
                clock_child_.emplace(calls_.way_to(node), clock_child_.size());
            clock_ = std::make_unique<clock::Root>(clock_child_.size());
            question(wire::Begin{1, Generation(1)});
            clock_->begin(1, static_cast<uint64_t>(now * 1e9));
        } else if (phase == "targets" && clock_->phase() != clock::Root::Phase::request) {
            enter("converge", now);
        } else if (phase == "converge" && clock_->declared()) {
            enter("freeze", now);
            question(wire::Freeze{1});
        } else if (phase == "freeze" && heard.frozen.ranks == size_) {
            enter("drain", now);
            question(wire::Drain{1, 1});
        } else if (phase == "drain" && heard.drained.ranks == size_ &&
                   heard.drained.sent == heard.drained.received) {
            enter("save", now);
            question(wire::Save{1, "/d/gen-000001", Generation(1), ""});
        } else if (phase == "save" && heard.saved == size_) {
            enter("commit and resume", now);
            write_manifest();
            question(wire::Resume{1});
        } else if (phase == "commit and resume" && heard.resumed.ranks == size_) {
            enter("end", now);
        }
        clock::Bytes bytes;
        while (clock_ && clock_->next_down(&bytes))
            for (auto& [child, at] : clock_child_) out_.push_back({child, wire::Clock{wire::packed(bytes)}});
    }
    // As it goes to the file system, but for that.
    void write_manifest() {
        store::Manifest m;
        m.generation = 1;
        m.images.reserve(size_);
        tally_.each_image([&](int32_t number, const wire::ImageRecord& image) {
            const Rank rank(static_cast<uint32_t>(number));
            m.images.push_back(
                {rank, image::image_name(rank), image.bytes, image::Checksum{image.checksum}, 0});
        });
        std::sort(m.images.begin(), m.images.end(), [](auto& a, auto& b) { return a.rank < b.rank; });
        store::write_text(m, nullptr, [this](std::string_view piece) { manifest_bytes_ += piece.size(); });
    }

    const uint32_t size_;
    tree::Members members_;
    tree::RollCall calls_;
    tree::Roster roster_;
    tree::Tally tally_{tree::Tally::Level::top};
    tree::Orders orders_;
    uint64_t orders_given_ = 0, manifest_bytes_ = 0;
    std::unique_ptr<clock::Root> clock_;
    std::map<int, size_t> clock_child_;
    std::vector<Out> out_;
};

// ---- the job

class Job {
  public:
    Job(int32_t ranks, int nodes, size_t radix) : shape_(radix), root_(ranks, radix) {
        for (int node = 0; node < nodes; ++node) {
            auto first = static_cast<int32_t>(int64_t{ranks} * node / nodes);
            auto end = static_cast<int32_t>(int64_t{ranks} * (node + 1) / nodes);
            daemons_.push_back(std::make_unique<Daemon>(node, first, end - first, ranks));
            daemons_.back()->start();
        }
    }
    void play() {
        // All daemons come at once, in the order of their numbers, as fast as the root's door lets them in.
        for (int node = 0; node < static_cast<int>(daemons_.size()); ++node)
            network_.send(node / kDoorsPerSecond, at(node).core, node, kRootAt,
                          std::make_shared<wire::Bytes>(wire::encode(
                              wire::NodeHello{fmt::format("node{:05}", node), 4711,
                                              fmt::format("10.0.{}.{}:40000", node / 256, node % 256)})));
        while (!network_.empty() && (root_.steps.empty() || !root_.done())) serve(network_.next());
    }
    void print(int32_t ranks, size_t radix) const {
        if (!root_.done()) fail("the job stands still in {}", root_.steps.back().name);
        auto began = [&](const char* name) {
            for (const Root::Step& step : root_.steps)
                if (step.name == name) return step.at;
            return 0.0;
        };
        double busiest = 0;
        for (const auto& daemon : daemons_) busiest = std::max(busiest, daemon->core.used);
        const double begin = began("targets"), end = began("end");
        std::printf(
            "{\"ranks\": %d, \"nodes\": %zu, \"radix\": %zu, \"depth\": %zu, \"latency_us\": %.0f, "
            "\"start_s\": %.6f, \"round_s\": %.6f, \"root_cpu_start_s\": %.6f, \"root_cpu_round_s\": %.6f, "
            "\"busiest_daemon_cpu_s\": %.6f, \"root_messages\": {\"in\": %llu, \"out\": %llu}, "
            "\"root_bytes\": {\"in\": %llu, \"out\": %llu}, \"root_beats_per_s\": %.1f, \"phases\": {",
            ranks, daemons_.size(), radix, 1 + shape_.ancestors(static_cast<int>(daemons_.size()) - 1).size(),
            latency * 1e6, begin, end - begin, start_cpu_, root_.core.used - start_cpu_, busiest,
            static_cast<unsigned long long>(root_.core.in - start_.in),
            static_cast<unsigned long long>(root_.core.out - start_.out),
            static_cast<unsigned long long>(root_.core.bytes_in - start_.bytes_in),
            static_cast<unsigned long long>(root_.core.bytes_out - start_.bytes_out),
            2.0 * static_cast<double>(std::min(radix, daemons_.size())) / 5);
        for (size_t i = 1; i + 1 < root_.steps.size(); ++i)
            std::printf("%s\"%s\": %.6f", i > 1 ? ", " : "", root_.steps[i].name.c_str(),
                        root_.steps[i + 1].at - root_.steps[i].at);
        std::puts("}}");
    }

  private:
    Daemon& at(int node) { return *daemons_[static_cast<size_t>(node)]; }
    // Runs a handler on a core, from when it is free; returns when it has ended.
    template <class Handler>
    static double run(Core& core, double now, const Handler& handler) {
        const double start = std::max(now, core.free_at), before = core.used, cpu = cpu_seconds();
        handler(start);
        core.used += cpu_seconds() - cpu;
        return core.free_at = start + (core.used - before);
    }
    void serve(const Event& event) {
        Core& core = event.to == kRootAt ? root_.core : at(event.to).core;
        if (event.frame) {
            ++core.in;
            core.bytes_in += event.frame->size() + wire::kTagSize;
        }
        if (event.to == kRootAt)
            at_root(event);
        else
            at_daemon(event);
    }
    void at_root(const Event& event) {
        std::vector<std::pair<int, Frame>> out;
        const bool started = root_.steps.size() > 1;
        const double done = run(root_.core, event.at, [&](double now) {
            const wire::Message message = message_of(*event.frame);
            if (std::holds_alternative<wire::NodeHello>(message)) prove();
            root_.hear(event.from, message, now);
            for (Root::Out& one : root_.take_out())
                out.emplace_back(one.to, std::make_shared<wire::Bytes>(wire::encode(one.message)));
        });
        for (auto& [to, frame] : out) network_.send(done, root_.core, kRootAt, to, frame);
        if (!started && root_.steps.size() > 1) {
            start_cpu_ = root_.core.used;
            start_ = root_.core;
            start_.out -= out.size();
            for (auto& [to, frame] : out) start_.bytes_out -= frame->size() + wire::kTagSize;
        }
    }
    void at_daemon(const Event& event) {
        Daemon& daemon = at(event.to);
        const int parent = shape_.parent(event.to);
        std::vector<std::pair<int, Frame>> out;
        const double done = run(daemon.core, event.at, [&](double now) {
            if (event.frame)
                daemon.hear(event.from == parent || event.from == kRootAt ? tree::Relay::kUp : event.from,
                            message_of(*event.frame), now);
            else
                daemon.timer = false, daemon.hand_up(now);
            for (Daemon::Out& one : daemon.take_out())
                out.emplace_back(one.to == tree::Relay::kUp ? parent : one.to,
                                 std::make_shared<wire::Bytes>(wire::encode(one.message)));
        });
        for (auto& [to, frame] : out) network_.send(done, daemon.core, event.to, to, frame);
        if (daemon.waits() && !std::exchange(daemon.timer, true))
            network_.wake(done + kPartsSeconds, event.to);
    }
    // The root's side of a handshake.
    void prove() {
        wire::Handshake root(wire::Role::root, key_);
        const double pause = cpu_seconds();
        wire::Handshake node(wire::Role::node, key_);
        const std::string hello = node.hello();
        root_.core.used -= cpu_seconds() - pause;
        const std::string answer = root.feed(hello.data(), hello.size());
        const double again = cpu_seconds();
        const std::string proof = node.feed(answer.data(), answer.size());
        root_.core.used -= cpu_seconds() - again;
        root.feed(proof.data(), proof.size());
        if (!root.done()) fail("the handshake failed");
    }

    const wire::Key key_ = wire::random_key();
    tree::Shape shape_;
    Network network_;
    Root root_;
    std::vector<std::unique_ptr<Daemon>> daemons_;
    double start_cpu_ = 0;
    Core start_;  // of the root, when the round began
};

int run(int argc, char** argv) {
    if (argc < 3) fail("scale-machines RANKS NODES [RADIX] [LATENCY_US]");
    const int32_t ranks = std::atoi(argv[1]);
    const int nodes = std::atoi(argv[2]);
    const size_t radix = argc > 3 ? static_cast<size_t>(std::atoi(argv[3])) : 64;
    if (argc > 4) latency = std::atof(argv[4]) * 1e-6;
    if (nodes < 1 || ranks < nodes) fail("a rank for each node, at least");
    Job job(ranks, nodes, radix);
    job.play();
    job.print(ranks, radix);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "scale-machines: %s\n", error.what());
        return 1;
    }
}
