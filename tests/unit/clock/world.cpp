#include "world.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace fermata::clock::test {

namespace {

void* take_memory(void* self, size_t bytes) {
    void* block = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memset(block, 0, bytes);
    static_cast<std::vector<void*>*>(self)->push_back(block);
    return block;
}

bool is_blocking(Do what) {
    return what == Do::collective || what == Do::create || what == Do::group_call || what == Do::release;
}

}  // namespace

World::World(const Program& program, const Plan& plan, uint64_t seed)
    : program_(program), plan_(plan), random_(seed * 0x9e3779b97f4a7c15ull + 1) {
    size_t ranks = size_t(program.ranks);
    processes_.resize(ranks);
    handles_.resize(ranks);
    for (size_t r = 0; r < ranks; r++) {
        handles_[r] = {this, int(r)};
        Options options;
        options.me = Rank(r);
        options.world = Rank(ranks);
        options.protocol = plan_.protocol;
        options.demand_delay_ns = plan_.fault_no_demand ? UINT64_MAX : plan_.demand_delay_ns;
        options.stall_ns = 100'000;
        options.fault_open_gate = plan_.fault_open_gate;
        Environment environment{&handles_[r], env_nothing, env_nothing, env_nap, env_nothing, env_fence};
        Process& p = processes_[r];
        p.clock = RankClock::create(options, environment, ChunkSource{&memory_, take_memory});
        p.clock->set_thread_multiple(program.threaded());
        p.comms.resize(program.comms.size());
        p.begun.resize(program.comms.size());
        p.obliged.resize(program.comms.size());
        p.freed.resize(program.comms.size());
        for (size_t c = 0; c < program.comms.size(); c++) {
            const Group& g = program.comms[c];
            if (g.parent < 0 && !g.call && std::count(g.members.begin(), g.members.end(), int(r)))
                p.comms[c] =
                    p.clock->register_comm(Uid{uid(int(c))}, g.members.data(), int32_t(g.members.size()));
        }
    }
    for (size_t t = 0; t < program.threads.size(); t++) {
        Thread thread;
        thread.rank = program.threads[t].rank;
        thread.index = int(t);
        threads_.push_back(thread);
        speed_.push_back(chance(3) ? int(1 + pick(20)) : 1);
        processes_[size_t(thread.rank)].clock->slot(int(t));
    }
    minimal_ = plan_.check_minimal && !program.threaded() && !program.endless() &&
               !program.has(Do::receive_any) && !program.has(Do::spin);
    make_tree();
}

World::~World() {
    for (void* block : memory_) free(block);
}

void World::fail(const std::string& what) {
    if (!out_.fault.empty()) return;
    out_.fault = what;
    for (size_t i = 0; i < threads_.size(); i++) {
        const Thread& t = threads_[i];
        out_.fault += "\n    thread " + std::to_string(i) + " of P" + std::to_string(t.rank + 1) +
                      (finished(t) ? " finished"
                                   : " at op " + std::to_string(t.pc) + " phase " + std::to_string(t.phase));
    }
    for (size_t r = 0; r < processes_.size(); r++) {
        char text[2000];
        size_t size = processes_[r].clock->diagnosis(text, sizeof text);
        out_.fault += "\n    P" + std::to_string(r + 1) + ": " + std::string(text, size);
    }
}

// ---- the tree

void World::make_tree() {
    size_t ranks = processes_.size();
    node_of_.assign(ranks, -1);
    child_of_.assign(ranks, 0);
    nodes_.clear();
    std::vector<size_t> children(size_t(plan_.nodes), 0);
    for (size_t r = 0; r < ranks; r++) {
        if (plan_.nodes == 0) {
            child_of_[r] = r;
            continue;
        }
        size_t n = r < size_t(plan_.nodes) ? r : pick(uint64_t(plan_.nodes));
        node_of_[r] = int(n);
        child_of_[r] = children[n]++;
    }
    for (size_t n = 0; n < size_t(plan_.nodes); n++) nodes_.push_back(std::make_unique<Node>(children[n]));
    RootOptions options;
    options.stuck_ns = 0;  // every program here must converge without the last resort
    options.fault_any_version = plan_.fault_any_version;
    root_ = std::make_unique<Root>(plan_.nodes ? size_t(plan_.nodes) : ranks, options);
    agent_links_.assign(ranks, {});
    node_links_.assign(size_t(plan_.nodes), {});
}

void World::drain_node(size_t n) {
    Bytes message;
    while (nodes_[n]->next_up(&message)) node_links_[n].up.push_back(message);
    while (nodes_[n]->next_down(&message))
        for (size_t r = 0; r < processes_.size(); r++)
            if (node_of_[r] == int(n)) agent_links_[r].down.push_back(message);
}

bool World::step_links() {
    // Root output travels late half of the time, so that news are batched.
    if (chance(2)) {
        Bytes message;
        while (root_->next_down(&message)) {
            if (plan_.nodes == 0)
                for (Link& link : agent_links_) link.down.push_back(message);
            else
                for (Link& link : node_links_) link.down.push_back(message);
        }
    }
    auto take = [&](std::deque<Bytes>& queue, bool may_reorder) {
        size_t i = may_reorder && plan_.fault_reorder ? pick(queue.size()) : 0;
        Bytes message = std::move(queue[i]);
        queue.erase(queue.begin() + ptrdiff_t(i));
        return message;
    };
    size_t links = agent_links_.size() + node_links_.size();
    size_t first = pick(2 * links);
    for (size_t i = 0; i < 2 * links; i++) {
        size_t at = (first + i) % (2 * links);
        bool up = at % 2;
        at /= 2;
        bool agent = at < agent_links_.size();
        size_t n = agent ? at : at - agent_links_.size();
        Link& link = agent ? agent_links_[n] : node_links_[n];
        std::deque<Bytes>& queue = up ? link.up : link.down;
        if (queue.empty()) continue;
        Bytes message = take(queue, up);
        if (!up && agent) {
            const char* why = "";
            bool intent = message[1] == uint8_t(Kind::intent);
            if (!processes_[n].clock->inbox(message.data(), message.size(), &why)) fail(why);
            if (intent) note_snapshot(int(n));
        } else if (!up) {
            if (!nodes_[n]->from_parent(message)) fail(nodes_[n]->error());
            drain_node(n);
        } else if (agent && node_of_[n] >= 0) {
            size_t parent = size_t(node_of_[n]);
            // With channels that are not FIFO the node may notice; the fault must show in the state instead.
            if (!nodes_[parent]->from_child(child_of_[n], message) && !plan_.fault_reorder)
                fail(nodes_[parent]->error());
            drain_node(parent);
        } else {
            if (!root_->from_child(agent ? child_of_[n] : n, message, now_) && !plan_.fault_reorder)
                fail(root_->error());
        }
        return true;
    }
    return false;
}

void World::step_agent(int rank) {
    RankClock* clock = processes_[size_t(rank)].clock;
    clock->poll(now_);
    uint8_t bytes[kMaxMessage];
    while (size_t size = clock->outbox(bytes, sizeof bytes))
        agent_links_[size_t(rank)].up.emplace_back(bytes, bytes + size);
}

// ---- simulated MPI

void World::send_done(const Message& m, int) {
    if (m.sync) threads_[size_t(m.send_thread)].requests[m.send_request] = true;
}

bool World::try_match(Process& p, Thread& t, int from, int tag) {
    auto fits = [&](const Message& m) { return (from < 0 || m.from == from) && m.tag == tag; };
    if (auto it = std::find_if(p.queue.begin(), p.queue.end(), fits); it != p.queue.end()) {
        p.queue.erase(it);  // was counted when pulled
        return true;
    }
    if (auto it = std::find_if(p.arrived.begin(), p.arrived.end(), fits); it != p.arrived.end()) {
        p.clock->slot(t.index).received_from(it->from);
        send_done(*it, it->from);
        p.arrived.erase(it);
        return true;
    }
    return false;
}

void World::deliver(int from, int to) {
    auto& channel = net_[{from, to}];
    Message m = channel.front();
    channel.pop_front();
    Process& p = processes_[size_t(to)];
    for (size_t i = 0; i < p.posted.size(); i++)
        if (p.posted[i].from == m.from && p.posted[i].tag == m.tag) {
            threads_[size_t(p.posted[i].thread)].requests[p.posted[i].request] = true;
            p.posted.erase(p.posted.begin() + ptrdiff_t(i));
            p.uncounted.push_back(m.from);  // until somebody tests the request
            send_done(m, from);
            return;
        }
    p.arrived.push_back(m);
}

void World::pull(int rank) {
    Process& p = processes_[size_t(rank)];
    for (int from : p.uncounted) p.clock->agent_slot().received_from(from);
    p.uncounted.clear();
    for (Message& m : p.arrived) {
        p.clock->agent_slot().received_from(m.from);
        send_done(m, m.from);
        p.queue.push_back(m);
    }
    p.arrived.clear();
}

bool World::complete(const Process& p, int rank, const Call& call) const {
    auto begun = [&](int r) { return processes_[size_t(r)].begun[size_t(call.comm)] >= call.k; };
    auto all = [&] {
        const auto& members = program_.comms[size_t(call.comm)].members;
        return std::all_of(members.begin(), members.end(), begun);
    };
    if (!plan_.early_return || call.flow == Flow::all) return all();
    // Buffers are finite: nobody runs far ahead of a member.
    for (int m : program_.comms[size_t(call.comm)].members)
        if (processes_[size_t(m)].begun[size_t(call.comm)] + 4 < call.k) return false;
    if (call.flow == Flow::from_root) return rank == call.root || begun(call.root);
    return rank != call.root || all();
}

// ---- threads

bool World::finished(const Thread& t) const { return t.pc >= program_.threads[size_t(t.index)].ops.size(); }

void World::next(Thread& t) {
    t.phase = 0;
    t.pc++;
    t.done_ops++;
    const Script& s = program_.threads[size_t(t.index)];
    if (t.pc >= s.ops.size() && s.loop >= 0 && size_t(s.loop) < s.ops.size()) t.pc = size_t(s.loop);
}

bool World::pass_gate(Thread& t, Comm& c, Instance k, Gate kind, Verdict* verdict) {
    Process& p = processes_[size_t(t.rank)];
    if (!p.clock->pending() && t.phase == 1) {  // the fast path: only before the first look
        *verdict = Verdict::pass;
        return true;
    }
    bool beyond = p.clock->known();
    *verdict = p.clock->gate_step(c, p.clock->slot(t.index), k, kind, t.gate);
    if (*verdict == Verdict::pass && beyond && p.clock->pending()) out_.extra += k > p.clock->target(c);
    return *verdict == Verdict::pass;
}

void World::step_collective(Thread& t, const Op& o) {
    Process& p = processes_[size_t(t.rank)];
    RankClock& clock = *p.clock;
    Slot& slot = clock.slot(t.index);
    size_t ci = size_t(o.comm);
    const Group& g = program_.comms[ci];
    if (t.phase == 0) {
        if (o.what == Do::group_call)
            p.comms[ci] =
                clock.register_group_call(Uid{uid(o.comm)}, g.members.data(), int32_t(g.members.size()));
        t.gate = {};
        t.k = clock.mark_entered(*p.comms[ci], slot.index);
        t.phase = 1;
        return;
    }
    if (t.phase == 4) {  // left; only the published rules hold a rank here
        if (plan_.fault_park_at_exit && clock.pending() && !clock.needy()) return pull(t.rank);
        if (clock.pending() && !clock.may_leave(slot)) return pull(t.rank);
        next(t);
        return;
    }
    Comm& c = *p.comms[ci];
    if (t.phase <= 2) {
        Verdict verdict;
        if (!pass_gate(t, c, t.k, Gate::blocking, &verdict)) {
            t.phase = 2;
            pull(t.rank);
            return;
        }
        if (p.begun[ci] + 1 != t.k) return fail("instance numbers do not follow the calls");
        if (stage_ == Stage::freezing && clock.frozen()) return fail("a gate opened after the freeze");
        p.begun[ci] = p.obliged[ci] = t.k;
        p.inside++;
        t.phase = 3;
        check_minimal(t, o.comm, t.k);
        return;
    }
    if (t.phase == 3) {
        if (!complete(p, t.rank, Call{o.comm, t.k, o.flow, o.root})) return;
        p.inside--;
        if (o.what == Do::create) {
            const Group& child = program_.comms[size_t(o.other)];
            if (std::count(child.members.begin(), child.members.end(), t.rank))
                p.comms[size_t(o.other)] = clock.register_comm(Uid{uid(o.other)}, child.members.data(),
                                                               int32_t(child.members.size()));
        }
        clock.mark_left(c);
        if (o.what == Do::release) {
            clock.unregister_comm(&c);
            p.comms[ci] = nullptr;
            p.freed[ci] = true;
        }
        t.phase = 4;
    }
}

int World::request_of(const Thread& t, const Op& o) {
    if (o.request >= 0) return o.request;
    int oldest = 0;
    for (const auto& [request, call] : t.calls)
        if (request < 0 && call.comm == o.comm && (oldest == 0 || call.k < t.calls.at(oldest).k))
            oldest = request;
    return oldest;
}

void World::step_finish(Thread& t, const Op& o) {
    Process& p = processes_[size_t(t.rank)];
    RankClock& clock = *p.clock;
    Slot& slot = clock.slot(t.index);
    int request = request_of(t, o);
    Call call = t.calls.at(request);
    Comm& c = *p.comms[size_t(call.comm)];
    bool polling = o.what == Do::spin;
    if (t.phase == 0) {
        if (!complete(p, t.rank, call)) {
            if (!clock.pending()) return;
            pull(t.rank);
            if (polling ? clock.polling(slot, now_) : clock.waiting(slot, t.wait, now_))
                clock.need_collective(slot, c, call.k);
            return;
        }
        clock.note_told(c, call.k);
        t.gate = {};
        t.phase = 1;
        return;
    }
    Verdict verdict;
    if (!pass_gate(t, c, call.k, polling ? Gate::try_tell : Gate::tell, &verdict)) {
        pull(t.rank);
        t.phase = verdict == Verdict::refuse ? 0 : 2;
        if (verdict == Verdict::refuse && clock.polling(slot, now_)) clock.need_collective(slot, c, call.k);
        return;
    }
    if (clock.frozen() && call.k > clock.target(c))
        return fail("a completion beyond the target was told after the freeze");
    if (polling) clock.polled(slot);
    clock.waited(slot, t.wait);
    t.wait = {};
    auto& obliged = p.obliged[size_t(call.comm)];
    obliged = std::max<uint64_t>(obliged, call.k);
    check_minimal(t, call.comm, call.k);
    t.calls.erase(request);
    next(t);
}

void World::wait_for_message(Thread& t, int from, int tag) {
    Process& p = processes_[size_t(t.rank)];
    if (!p.clock->pending()) return;
    pull(t.rank);
    if (!p.clock->waiting(p.clock->slot(t.index), t.wait, now_)) return;
    if (from >= 0)
        p.clock->need_message(p.clock->slot(t.index), from, label_of(Uid{0}, tag));
    else
        p.clock->need_anything(p.clock->slot(t.index), t.wait);
}

void World::step_thread(Thread& t) {
    Process& p = processes_[size_t(t.rank)];
    if (finished(t)) {  // in MPI_Finalize: parked, pulling
        if (p.clock->pending()) pull(t.rank);
        return;
    }
    const Op& o = op(t);
    RankClock& clock = *p.clock;
    Slot& slot = clock.slot(t.index);
    // A frozen thread outside MPI is stopped; one in a wrapper's wait offers a stop point.
    bool stopped = clock.frozen() && (t.phase == 0 || (o.what != Do::send && t.phase == 2));
    if (stopped) return;
    auto unblocked = [&] {
        clock.waited(slot, t.wait);
        t.wait = {};
        next(t);
    };
    switch (o.what) {
        case Do::collective:
        case Do::create:
        case Do::group_call:
        case Do::release:
            return step_collective(t, o);
        case Do::finish:
        case Do::spin:
            return step_finish(t, o);
        case Do::start: {
            Comm& c = *p.comms[size_t(o.comm)];
            bool obliges = !o.reissuable || plan_.fault_count_at_start || clock.policy().count_at_start;
            if (t.phase == 0) {
                t.gate = {};
                t.k = clock.mark_started(c, slot, obliges);
                t.phase = 1;
                if (obliges) return;
            }
            Verdict verdict;
            if (obliges && !pass_gate(t, c, t.k, Gate::start, &verdict)) {
                t.phase = 2;
                return pull(t.rank);
            }
            if (p.begun[size_t(o.comm)] + 1 != t.k) return fail("instance numbers do not follow the calls");
            p.begun[size_t(o.comm)] = t.k;
            if (obliges) {
                p.obliged[size_t(o.comm)] = t.k;
                clock.mark_left(c);
                check_minimal(t, o.comm, t.k);
            }
            t.calls[o.request >= 0 ? o.request : --t.anonymous] = Call{o.comm, t.k, o.flow, o.root};
            return next(t);
        }
        case Do::send:
        case Do::isend: {
            bool blocking = o.what == Do::send;
            if (t.phase == 0) {
                slot.sent_to(o.peer);
                slot.labelled(o.peer, label_of(Uid{0}, o.tag));
                bool sync = pick(2);
                int request = blocking ? -1 : o.request;
                t.requests[request] = !sync;
                net_[{t.rank, o.peer}].push_back({t.rank, o.tag, sync, t.index, request, serial_++});
                t.phase = 1;
                if (!blocking) next(t);
                return;
            }
            if (t.requests[-1]) next(t);
            return;
        }
        case Do::wait_send:
            if (t.requests[o.request]) return unblocked();
            if (clock.pending()) pull(t.rank);
            return;
        case Do::receive:
        case Do::receive_any:
            if (try_match(p, t, o.peer, o.tag)) return unblocked();
            return wait_for_message(t, o.peer, o.tag);
        case Do::ireceive:
            t.requests[o.request] = try_match(p, t, o.peer, o.tag);
            if (!t.requests[o.request]) p.posted.push_back({o.peer, o.tag, t.index, o.request});
            return next(t);
        case Do::wait_receive:
            if (!t.requests[o.request]) return wait_for_message(t, o.peer, o.tag);
            pull(t.rank);  // counts it
            return unblocked();
        case Do::signal:
            p.flags[o.tag]++;
            return next(t);
        case Do::await:
            if (p.flags[o.tag] == 0) return;
            p.flags[o.tag]--;
            return next(t);
    }
}

// ---- the environment of the production class

void World::env_nothing(void*) {}
void World::env_nap(void*, std::atomic<uint32_t>*, uint32_t, uint32_t) {}

void World::env_fence(void* self) {
    // The agent has raised the flag and not yet taken the snapshot: the rank's threads go on for a while.
    auto* handle = static_cast<Handle*>(self);
    World& w = *handle->world;
    if (w.in_fence_) return;
    w.in_fence_ = true;
    for (uint64_t n = w.pick(6); n > 0; n--)
        for (Thread& t : w.threads_)
            if (t.rank == handle->rank && w.chance(2)) w.step_thread(t);
    w.in_fence_ = false;
}

// ---- minimality

// Only what the causal past of the snapshot demands may be let through: the least fixed point over the
// scripts.
void World::closure() {
    closed_ = true;
    size_t ranks = processes_.size();
    closure_target_ = first_targets_;
    std::vector<std::vector<uint64_t>> must_send(ranks, std::vector<uint64_t>(ranks, 0));
    must_reach_.assign(threads_.size(), 0);
    for (bool changed = true; changed;) {
        changed = false;
        auto raise = [&](auto& value, auto least) {
            if (value < least) {
                value = least;
                changed = true;
            }
        };
        for (size_t i = 0; i < threads_.size(); i++) {
            const Script& s = program_.threads[i];
            // How far: to the begin of every owed collective, to every owed send.
            std::vector<Instance> begun(program_.comms.size(), 0);
            std::vector<uint64_t> sent(ranks, 0);
            size_t reach = pc_at_snap_[i];
            for (size_t j = 0; j < s.ops.size(); j++) {
                const Op& o = s.ops[j];
                if (is_blocking(o.what) || o.what == Do::start) {
                    if (++begun[size_t(o.comm)] <= closure_target_[size_t(o.comm)])
                        reach = std::max(reach, j);
                } else if (o.what == Do::send || o.what == Do::isend) {
                    if (++sent[size_t(o.peer)] <= must_send[size_t(s.rank)][size_t(o.peer)])
                        reach = std::max(reach, j);
                }
            }
            raise(must_reach_[i], reach);
            // What that takes.
            std::fill(begun.begin(), begun.end(), 0);
            std::map<int, Instance> instance;
            std::map<int, std::deque<Instance>> anonymous;
            std::map<std::pair<int, int>, int> received;
            std::map<int, std::pair<int, int>> posted;
            auto nth_send = [&](int from, int tag, int nth) {
                uint64_t total = 0;
                int same = 0;
                for (const Script& other : program_.threads)
                    if (other.rank == from)
                        for (const Op& q : other.ops)
                            if ((q.what == Do::send || q.what == Do::isend) && q.peer == s.rank) {
                                total++;
                                if (q.tag == tag && ++same == nth) return total;
                            }
                return total;
            };
            for (size_t j = 0; j <= reach && j < s.ops.size(); j++) {
                const Op& o = s.ops[j];
                bool through =
                    j < reach && j >= pc_at_snap_[i];  // must complete, and had not at the snapshot
                if (is_blocking(o.what) || o.what == Do::start) {
                    Instance k = ++begun[size_t(o.comm)];
                    instance[o.request] = k;
                    if (o.request < 0 && o.what == Do::start) anonymous[o.comm].push_back(k);
                    if (through && (o.what != Do::start || !o.reissuable))
                        raise(closure_target_[size_t(o.comm)], k);
                    if (j == reach && j > pc_at_snap_[i] && is_blocking(o.what))
                        raise(closure_target_[size_t(o.comm)], k);
                } else if (o.what == Do::finish) {
                    if (o.request < 0) {
                        instance[-1] = anonymous[o.comm].front();
                        anonymous[o.comm].pop_front();
                    }
                    if (through) raise(closure_target_[size_t(o.comm)], instance[o.request]);
                } else if (o.what == Do::receive) {
                    int nth = ++received[{o.peer, o.tag}];
                    if (through)
                        raise(must_send[size_t(o.peer)][size_t(s.rank)], nth_send(o.peer, o.tag, nth));
                } else if (o.what == Do::ireceive) {
                    posted[o.request] = {o.tag, ++received[{o.peer, o.tag}]};
                } else if (o.what == Do::wait_receive && through) {
                    auto [tag, nth] = posted[o.request];
                    raise(must_send[size_t(o.peer)][size_t(s.rank)], nth_send(o.peer, tag, nth));
                }
            }
        }
    }
}

void World::note_snapshot(int rank) {
    Process& p = processes_[size_t(rank)];
    snapped_[size_t(rank)] = true;
    for (size_t i = 0; i < threads_.size(); i++)
        if (threads_[i].rank == rank) pc_at_snap_[i] = threads_[i].pc;
    for (size_t c = 0; c < p.comms.size(); c++)
        if (p.comms[c]) first_targets_[c] = std::max(first_targets_[c], p.clock->target(*p.comms[c]));
    if (minimal_ && std::all_of(snapped_.begin(), snapped_.end(), [](bool b) { return b; })) closure();
}

void World::check_minimal(const Thread& t, int comm, Instance k) {
    if (!minimal_ || !closed_ || stage_ != Stage::converging || !processes_[size_t(t.rank)].clock->pending())
        return;
    if (k > closure_target_[size_t(comm)])
        fail("not minimal: " + program_.comms[size_t(comm)].name + " instance " + std::to_string(k) +
             " was let through on P" + std::to_string(t.rank + 1) + ", the causal past needs only " +
             std::to_string(closure_target_[size_t(comm)]));
}

// ---- a checkpoint

void World::begin_checkpoint() {
    stage_ = Stage::converging;
    closed_ = false;
    snapped_.assign(processes_.size(), false);
    pc_at_snap_.assign(threads_.size(), 0);
    first_targets_.assign(program_.comms.size(), 0);
    root_->begin(++epoch_, now_);
}

// Invariants at DECLARE.
void World::check_declared() {
    for (size_t r = 0; r < processes_.size(); r++) {
        Process& p = processes_[r];
        if (p.inside) return fail("unsafe: P" + std::to_string(r + 1) + " is inside a collective");
        if (p.clock->needy()) return fail("unsafe: P" + std::to_string(r + 1) + " is still needed");
        for (auto* links : {&agent_links_, &node_links_})
            for (const Link& link : *links)
                for (const Bytes& m : link.up)
                    if (m[1] != uint8_t(Kind::safe) && m[4] == uint8_t(epoch_))
                        return fail("unsafe: a message of kind " + std::to_string(m[1]) +
                                    " is still on its way up");
    }
    for (size_t c = 0; c < program_.comms.size(); c++) {
        uint64_t most = 0, least = UINT64_MAX;
        Instance target = UINT64_MAX;
        for (int m : program_.comms[c].members) {
            Process& p = processes_[size_t(m)];
            most = std::max(most, p.obliged[c]);
            least = std::min(least, p.begun[c]);
            if (!p.comms[c]) continue;
            Instance t = p.clock->target(*p.comms[c]);
            if (target != UINT64_MAX && t != target)
                return fail("unsafe: members of " + program_.comms[c].name + " have different targets");
            target = t;
            if (p.obliged[c] > t || p.begun[c] < t)
                return fail("unsafe: P" + std::to_string(m + 1) + " is not at the target of " +
                            program_.comms[c].name);
        }
        if (most > least)
            return fail("unsafe: instance " + std::to_string(most) + " of " + program_.comms[c].name +
                        " is begun by some members only");
    }
}

bool World::all_frozen() const {
    for (const Process& p : processes_)
        if (!p.clock->frozen()) return false;
    return true;
}

void World::check_frozen() {
    check_declared();
    for (Thread& t : threads_) {
        if (finished(t) || t.phase != 2 || op(t).what == Do::send) continue;
        Process& p = processes_[size_t(t.rank)];
        const Op& o = op(t);
        Gate kind = is_blocking(o.what) ? Gate::blocking : o.what == Do::start ? Gate::start : Gate::tell;
        Instance k = kind == Gate::tell ? t.calls.at(request_of(t, o)).k : t.k;
        if (p.clock->gate_step(*p.comms[size_t(o.comm)], p.clock->slot(t.index), k, kind, t.gate) ==
                Verdict::pass &&
            k > p.clock->target(*p.comms[size_t(o.comm)]))
            return fail("unsafe: a gate can still open");
    }
}

// As the agents do it: receive everything that was sent; non-blocking collectives up to the target end.
void World::drain() {
    for (auto& [channel, messages] : net_)
        while (!messages.empty()) deliver(channel.first, channel.second);
    uint64_t sent = 0, received = 0;
    for (size_t r = 0; r < processes_.size(); r++) {
        pull(int(r));
        Totals totals = processes_[r].clock->totals();
        sent += totals.sent;
        received += totals.received;
    }
    if (sent != received)
        fail("drain: " + std::to_string(sent) + " messages sent, " + std::to_string(received) + " received");
    for (Thread& t : threads_) {
        Process& p = processes_[size_t(t.rank)];
        for (auto& [request, call] : t.calls) {
            bool owed = call.k <= p.clock->target(*p.comms[size_t(call.comm)]);
            Call full = call;
            full.flow = Flow::all;
            if (owed && !complete(p, t.rank, full))
                fail("drain: a collective below the target cannot complete");
            if (!owed && call.k <= p.obliged[size_t(call.comm)])
                fail("drain: told complete, but above the target");
        }
    }
}

void World::end_checkpoint(bool restart) {
    stage_ = Stage::running;
    root_->end();
    if (restart) {
        // Threads of a send that the drain completed are released by it; the rest is made new.
        make_tree();
        epoch_ = 0;
        for (Process& p : processes_) p.clock->restart();
        return;
    }
    // The word to resume travels behind the clock's messages on the same channels.
    Bytes message;
    while (root_->next_down(&message))
        for (Link& link : plan_.nodes == 0 ? agent_links_ : node_links_) link.down.push_back(message);
    for (size_t n = 0; n < node_links_.size(); n++) {
        for (Bytes& m : node_links_[n].down) nodes_[n]->from_parent(m);
        node_links_[n].down.clear();
        drain_node(n);
    }
    for (size_t r = 0; r < agent_links_.size(); r++) {
        for (Bytes& m : agent_links_[r].down) processes_[r].clock->inbox(m.data(), m.size());
        agent_links_[r].down.clear();
    }
    // Ranks hear of it one by one, while others go on already.
    std::vector<size_t> order(processes_.size());
    for (size_t i = 0; i < order.size(); i++) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    for (size_t r : order) {
        processes_[r].clock->resume();
        for (uint64_t n = pick(8); n > 0 && out_.fault.empty(); n--) step();
    }
}

uint64_t World::progress_stamp() const {
    uint64_t stamp = 0;
    for (const Thread& t : threads_)  // the phase of a poll toggles
        stamp += t.done_ops * 8 + (finished(t) || op(t).what == Do::spin ? 0 : uint64_t(t.phase));
    for (const auto& [channel, messages] : net_) stamp += messages.size() << 32;
    return stamp;
}

bool World::step() {
    out_.steps++;
    now_ += pick(4000);
    if (stage_ == Stage::running || pick(100) < 60) {
        uint64_t w = pick(100);
        if (w < 75) {
            Thread& t = threads_[pick(threads_.size())];
            if (speed_[size_t(t.index)] == 1 || chance(uint64_t(speed_[size_t(t.index)]))) step_thread(t);
        } else if (!net_.empty()) {
            auto it = net_.begin();
            std::advance(it, ptrdiff_t(pick(net_.size())));
            if (!it->second.empty()) deliver(it->first.first, it->first.second);
        }
        if (stage_ == Stage::running && chance(4)) step_links();  // late messages of an epoch that is over
        return true;
    }
    if (chance(2)) step_agent(int(pick(processes_.size())));
    step_links();
    return true;
}

Outcome World::run() {
    auto idle_watch = [this, stamp = uint64_t{0}, idle = uint64_t{0}]() mutable {
        uint64_t s = progress_stamp() + uint64_t(root_->version()) * 1000003;
        if (s != stamp) {
            stamp = s;
            idle = 0;
        } else if (++idle % 500 == 0) {
            // Nobody can do anything but wait: let time pass, in leaps, so that everybody can react between
            // them.
            now_ += 50'000ull << std::min<uint64_t>(idle / 500, 20);
        }
        return idle;
    };
    size_t ops = 0;
    for (const Script& s : program_.threads) ops += s.ops.size();
    for (int n = 0; n < plan_.checkpoints && out_.fault.empty(); n++) {
        for (uint64_t warm = pick(ops * 8 / uint64_t(plan_.checkpoints) + 10); warm > 0; warm--) step();
        begin_checkpoint();
        uint64_t limit = out_.steps + plan_.step_limit;
        uint64_t abort_at = plan_.aborts && chance(8) ? out_.steps + pick(600) : UINT64_MAX;
        while (!root_->declared() && out_.fault.empty() && out_.steps < abort_at) {
            step();
            if (idle_watch() > 15'000) fail("stuck: no safe state, and nothing moves");
            if (out_.steps > limit) fail("no safe state within the step limit");
        }
        if (!out_.fault.empty()) break;
        if (!root_->declared()) {
            out_.aborted++;
            end_checkpoint(false);
            continue;
        }
        out_.raises += root_->counts().raises;
        out_.demands += root_->counts().demands;
        out_.licences += root_->counts().licences;
        check_declared();
        stage_ = Stage::freezing;
        while (!all_frozen() && out_.fault.empty()) {
            step();
            if (idle_watch() > 50'000) fail("FREEZE does not arrive");
        }
        if (out_.fault.empty()) check_frozen();
        if (out_.fault.empty()) drain();
        if (!out_.fault.empty()) break;
        bool restart = plan_.restarts && chance(3);
        out_.restarts += restart;
        out_.checkpoints++;
        end_checkpoint(restart);
    }
    // What the clock has hidden and parked must come back: the program ends as if nothing had happened.
    auto all_finished = [this] {
        return std::all_of(threads_.begin(), threads_.end(), [this](const Thread& t) { return finished(t); });
    };
    if (program_.endless()) {
        std::vector<uint64_t> goal;  // every thread gets on by some operations
        for (Thread& t : threads_) goal.push_back(t.done_ops + 5);
        auto all_moved = [&] {
            return std::all_of(threads_.begin(), threads_.end(), [&](const Thread& t) {
                return finished(t) || t.done_ops >= goal[size_t(t.index)];
            });
        };
        while (out_.fault.empty() && !all_moved()) {
            step();
            if (idle_watch() > 15'000) fail("the program is stuck after the checkpoints");
        }
    } else {
        while (out_.fault.empty() && !all_finished()) {
            step();
            if (idle_watch() > 15'000) fail("the program is stuck after the checkpoints");
        }
    }
    return out_;
}

}  // namespace fermata::clock::test
