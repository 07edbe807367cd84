// For each rule a small program that goes wrong without it: the shortest traces of the protocol's history.
#pragma once

#include "cases.h"

namespace fermata::replay::test {

struct Small {
    Rule away;
    const char* name;
    std::vector<std::string> ranks;
    std::string copies;  // by rank: 1 = there is one
    int kills, hops, drains;
    bool node = true;
    uint64_t log_bytes = 1 << 20;
};

inline const std::vector<Small>& small_programs() {
    static const std::vector<Small> all = {
        // telling
        {Rule::harvest,
         "harvest",
         {"isend1.L=1 send1 wait1", "irecv0=1 irecv0=2 test2 wait1,2"},
         "",
         0,
         1,
         0},
        {Rule::harvest_probe,
         "harvest_probe",
         {"send1", "irecv*=1 probe* recv? wait1", "send1.W"},
         "",
         0,
         1,
         0},
        {Rule::name_drained, "name_drained", {"send1 send1", "irecv0=1 irecv0=2 wait2 wait1"}, "01", 1, 0, 1},
        {Rule::commit_send, "commit_send", {"send1 recv1", "recv* recv* send0", "send1"}, "01", 1, 0, 0},
        {Rule::commit_coll,
         "commit_coll",
         {"send1 bcast1", "recv* recv* bcast1", "send1 bcast1"},
         "01",
         1,
         0,
         0},
        {Rule::told_is_a_set,
         "told_is_a_set",
         {"ibarrier=1 ibcast0=2 wait2 wait1", "ibarrier=1 ibcast0=2 wait1,2"},
         "",
         0,
         1,
         0},
        {Rule::tell_any_order,
         "tell_any_order",
         {"ibarrier=1 ibcast0=2 wait2 send1 wait1", "recv0 ibarrier=1 ibcast0=2 wait1,2"},
         "",
         0,
         0,
         0},
        {Rule::ssend_receipt,
         "ssend_receipt",
         {"ssend1 send2", "irecv*=1 irecv2=2 wait1,2", "recv0 send1"},
         "",
         0,
         1,
         0},
        {Rule::promise_order,
         "promise_order",
         {"ssend1 send2 send1", "irecv*=1 irecv0=2 irecv2=3 wait1,2,3", "recv0 send1"},
         "",
         0,
         1,
         0},
        {Rule::input_copied, "input_copied", {"allreduce!", "allreduce!"}, "", 0, 1, 0},
        {Rule::spill, "spill", {"send1 send1 send1.t1", "recv0.t1 recv0 recv0"}, "", 0, 0, 0, true, 16},
        // sends after a recovery
        {Rule::suppress, "suppress", {"send1 send1 send1", "recv0 recv0 recv0"}, "10", 1, 0, 0},
        {Rule::suppressed_open, "suppressed_open", {"isend1=1 send1 wait1", "recv0 recv0"}, "", 0, 1, 0},
        {Rule::suppressed_logged, "suppressed_logged", {"send1", "recv0"}, "11", 2, 0, 0},
        {Rule::resend, "resend", {"send1", "recv0"}, "", 0, 1, 0},
        {Rule::by_ord, "by_ord", {"send1.t1 send1", "recv0.t* recv0.t*"}, "", 0, 1, 0},
        {Rule::interleaved, "interleaved", {"isend1.L=1 send1 wait1", "recv0 recv0"}, "", 0, 1, 0},
        {Rule::replace_known, "replace_known", {"send1 send1", "recv0 recv0"}, "01", 1, 1, 0},
        // counting
        {Rule::count_pulled, "count_pulled", {"send1 send1", "recv0 recv0"}, "", 0, 1, 1},
        {Rule::count_ring, "count_ring", {"send1 send1", "recv0 recv0"}, "01", 1, 0, 0},
        {Rule::cut_by_receipt, "cut_by_receipt", {"send1", "recv0"}, "01", 1, 1, 0},
        {Rule::cut_by_everywhere, "cut_by_everywhere", {"bcast0", "bcast0"}, "01", 1, 1, 0},
        {Rule::drain_takes_all, "drain_takes_all", {"send1 send1", "irecv0=1 irecv0=2 wait1,2"}, "", 0, 1, 1},
        {Rule::drain_is_receipts, "drain_is_receipts", {"send1", "recv0"}, "01", 1, 0, 1},
        // collectives
        {Rule::only_told, "only_told", {"allreduce", "allreduce"}, "", 0, 1, 0},
        {Rule::result_from_told, "result_from_told", {"allreduce", "allreduce"}, "", 0, 1, 0},
        {Rule::twin_is_normal, "twin_is_normal", {"scan", "scan"}, "", 0, 1, 0},
        {Rule::debts, "debts", {"bcast0", "bcast0"}, "", 0, 1, 0},
        {Rule::pass_logs, "pass_logs", {"reduce0", "reduce0"}, "10", 1, 1, 0},
        {Rule::ring_first,
         "ring_first",
         {"ibarrier=1 ibcast0=2 wait2 wait1", "ibarrier=1 ibcast0=2 wait1,2"},
         "10",
         1,
         0,
         0},
        {Rule::plan_binds,
         "plan_binds",
         {"ibcast0=1 recv2 wait1 barrier", "ibcast0=1 wait1 iprobe0 iprobe0 barrier",
          "ibcast0=1 wait1 send0 barrier"},
         "01",
         1,
         0,
         0},
        {Rule::orphans, "orphans", {"new1/0,1 send1.c1", "new1/0,1 recv0.c1"}, "", 0, 1, 0},
        {Rule::orphans_plan, "orphans_plan", {"new1/0,1 bcast0.c1", "new1/0,1 bcast0.c1"}, "", 0, 1, 0},
        {Rule::members_make,
         "members_make",
         {"new1/1,2", "new1/1,2 send2.c1", "new1/1,2 recv1.c1"},
         "",
         0,
         1,
         0},
        {Rule::free_late,
         "free_late",
         {"new1/0,1 bcast0.c1 free.c1", "new1/0,1 bcast0.c1 free.c1"},
         "01",
         1,
         0,
         0},
        {Rule::free_settled,
         "free_settled",
         {"new1/0,1 isend1.c1=1 free.c1 wait1 barrier", "new1/0,1 irecv0.c1=1 free.c1 barrier wait1"},
         "",
         0,
         1,
         0},
        // recovery, output, end
        {Rule::nothing_before_go,
         "nothing_before_go",
         {"send1 send1", "recv0 recv0", "print print"},
         "011",
         1,
         1,
         0},
        {Rule::keep_output, "keep_output", {"print print", "print"}, "10", 1, 0, 0},
        {Rule::output_stable, "output_stable", {"send1", "recv* print recv*", "send1"}, "01", 1, 0, 0},
        {Rule::finalize_stable, "finalize_stable", {"send1", "recv0"}, "01", 1, 0, 0},
        {Rule::arrive_anew, "arrive_anew", {"print", "print"}, "10", 1, 0, 0},
        {Rule::release_or_recover, "release_or_recover", {"print", "print"}, "", 0, 1, 0},
    };
    return all;
}

// The k-th run of it.
inline Case small_case(const Small& small, uint64_t k, Rule away) {
    Case one;
    one.program = parse(small.ranks);
    one.seed = k + 1;
    std::mt19937_64 random(one.seed);
    for (char copy : small.copies) one.plan.replicated.push_back(copy == '1');
    one.plan.level_node = small.node;
    one.plan.ring = 1 + random() % 4;
    one.plan.kills = small.kills;
    one.plan.hops = small.hops;
    one.plan.drains = small.drains;
    one.plan.log_bytes = small.log_bytes;
    one.plan.lazy = random() % 2 == 0;
    one.plan.rarely = random() % 2 == 0 ? 8 : 3;
    one.plan.away = away;
    one.plan.rollbacks = false;
    return one;
}

// The same schedule again and again, all ranks with a copy: with a death or a hop at each of its steps, and
// for `failures` = 2 with another one at each step behind it. Returns the first fault.
inline std::string every_moment(const Small& small, uint64_t seed, bool node, int failures, Sum* sum) {
    Case one = small_case(small, seed, Rule::none);
    one.plan.kills = one.plan.hops = one.plan.drains = 0;
    one.plan.replicated.assign(one.program.ranks.size(), true);
    one.plan.level_node = node;
    auto run = [&](std::vector<Moment> moments, uint64_t* steps) {
        one.plan.moments = std::move(moments);
        Result out = Job(one.program, one.plan, one.seed).run();
        sum->add(out);
        *steps = out.steps;
        if (out.fault.empty()) return out.fault;
        std::string text = out.fault + ", seed " + std::to_string(seed) + ", with";
        for (const Moment& moment : one.plan.moments) {
            text += moment.dies ? " a death of " + std::to_string(*moment.dies) : std::string(" a hop");
            text += " at step " + std::to_string(moment.step);
        }
        return text;
    };
    uint64_t steps = 0, more = 0, last = 0;
    std::string fault = run({}, &steps);
    auto kinds = one.program.ranks.size() + 1;
    auto moment = [&](uint64_t step, size_t kind) {
        return kind == 0 ? Moment{step, {}} : Moment{step, kind - 1};
    };
    for (uint64_t step = 1; step <= steps && fault.empty(); step++)
        for (size_t kind = 0; kind < kinds && fault.empty(); kind++) {
            fault = run({moment(step, kind)}, &more);
            for (uint64_t then = step; failures > 1 && then <= more && fault.empty(); then++)
                for (size_t other = 0; other < kinds && fault.empty(); other++)
                    fault = run({moment(step, kind), moment(then, other)}, &last);
        }
    return fault;
}

}  // namespace fermata::replay::test
