// Random programs, random schedules, random checkpoints, production clock classes.
//   explore --programs N --seed S [--show] [--protocol cc-d|cc|2pc] [--fault NAME]
// Prints a line per slice and a summary; returns 1 at the first violation (with program and seed).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cases.h"

using namespace fermata::clock;
using namespace fermata::clock::test;

int main(int argc, char** argv) {
    uint64_t programs = 1000, seed = 1, slice = 0;
    Plan overrides;
    bool keep_going = false;
    std::string scenario;  // a program as text instead of random ones
    for (int i = 1; i < argc; i++) {
        std::string a = argv[i];
        auto value = [&] { return i + 1 < argc ? argv[++i] : (char*)""; };
        if (a == "--programs")
            programs = strtoull(value(), nullptr, 10);
        else if (a == "--seed")
            seed = strtoull(value(), nullptr, 10);
        else if (a == "--slice")
            slice = strtoull(value(), nullptr, 10);
        else if (a == "--scenario")
            scenario = value();
        else if (a == "--limit")
            overrides.step_limit = strtoull(value(), nullptr, 10);
        else if (a == "--count")
            keep_going = true;
        else if (a == "--protocol") {
            if (!protocol_from_name(value(), &overrides.protocol))
                return fprintf(stderr, "unknown protocol\n"), 2;
        } else if (a == "--fault") {
            if (!set_fault(overrides, value())) return fprintf(stderr, "unknown fault\n"), 2;
        } else {
            return fprintf(stderr,
                           "usage: explore [--programs N] [--seed S] [--slice N] [--count] [--scenario TEXT] "
                           "[--protocol P] [--fault F]\n"),
                   2;
        }
    }
    if (slice == 0) slice = programs;
    auto start = std::chrono::steady_clock::now();
    Sum sum;
    uint64_t bad = 0;
    for (uint64_t i = 0; i < programs; i++) {
        Case one = random_case(seed + i, overrides);
        if (!scenario.empty()) one.program = parse(scenario.c_str());
        Outcome out = World(one.program, one.plan, seed + i).run();
        sum.add(out);
        if (!out.fault.empty()) {
            bad++;
            if (!keep_going) {
                printf("seed %llu: %s\n%s", (unsigned long long)(seed + i), out.fault.c_str(),
                       one.program.text().c_str());
                return 1;
            }
        }
        if ((i + 1) % slice == 0 || i + 1 == programs) {
            double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            printf(
                "seeds %llu..%llu: %llu programs, %llu bad, %llu checkpoints, %llu aborted, %llu restarts, "
                "%llu steps, extra %.3f, raises %.3f, demands %.3f, licences %.3f per checkpoint, %.1f s\n",
                (unsigned long long)seed, (unsigned long long)(seed + i), (unsigned long long)(i + 1),
                (unsigned long long)bad, (unsigned long long)sum.checkpoints, (unsigned long long)sum.aborted,
                (unsigned long long)sum.restarts, (unsigned long long)sum.steps, sum.per(sum.extra),
                sum.per(sum.raises), sum.per(sum.demands), sum.per(sum.licences), seconds);
            fflush(stdout);
        }
    }
    return bad != 0;
}
