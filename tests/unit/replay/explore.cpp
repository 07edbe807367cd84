// Random programs, random schedules, deaths, hops: replay-explore --programs N --seed S [--schedules K]
// [--away N] [--trace]. Returns 1 at the first fault, with program and seed.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "small.h"

using namespace fermata::replay::test;

int main(int argc, char** argv) {
    uint64_t programs = 1000, seed = 1, schedules = 3;
    int away = 0, moments = 0;
    bool trace = false, small = false;
    for (int i = 1; i < argc; i++) {
        std::string option = argv[i];
        auto number = [&] { return i + 1 < argc ? strtoull(argv[++i], nullptr, 10) : 0; };
        if (option == "--programs")
            programs = number();
        else if (option == "--seed")
            seed = number();
        else if (option == "--schedules")
            schedules = number();
        else if (option == "--away")
            away = static_cast<int>(number());
        else if (option == "--moments")
            moments = static_cast<int>(number());
        else if (option == "--small")
            small = true;
        else if (option == "--trace")
            trace = true;
        else
            return fprintf(stderr,
                           "usage: replay-explore [--programs N] [--seed S] [--schedules K] [--away N] "
                           "[--small] [--moments 1|2] [--trace]\n"),
                   2;
    }
    if (moments != 0) {
        Sum sum;
        for (const Small& one : small_programs())
            for (uint64_t k = 0; k < programs; k++)
                for (bool node : {false, true})
                    if (std::string fault = every_moment(one, seed + k, node, moments, &sum); !fault.empty())
                        return printf("%s: %s\n", one.name, fault.c_str()), 1;
        printf("%s\n", sum.text().c_str());
        return 0;
    }
    if (small) {
        int bad = 0;
        for (const Small& one : small_programs()) {
            uint64_t first = 0, k = 0;
            std::string found = "nothing";
            for (; k < programs && first == 0; k++) {
                Case with = small_case(one, k, one.away);
                Result out = Job(with.program, with.plan, with.seed).run();
                if (out.fault.empty()) continue;
                first = k + 1;
                found = out.fault;
            }
            printf("%s: run %llu, %s\n", one.name, static_cast<unsigned long long>(first), found.c_str());
            bad += first == 0;
            for (k = 0; k < programs; k++) {
                Case with = small_case(one, k, fermata::replay::Rule::none);
                Job job(with.program, with.plan, with.seed);
                job.tracing = trace;
                Result out = job.run();
                if (out.fault.empty()) continue;
                printf("%s: run %llu with all rules: %s\n", one.name, static_cast<unsigned long long>(k + 1),
                       out.fault.c_str());
                bad++;
                break;
            }
        }
        return bad != 0;
    }
    auto begin = std::chrono::steady_clock::now();
    Sum sum;
    for (uint64_t i = 0; i < programs; i++)
        for (uint64_t k = 0; k < schedules; k++) {
            Case one = random_case(seed + i, k);
            one.plan.away = static_cast<fermata::replay::Rule>(away);
            Job job(one.program, one.plan, one.seed);
            job.tracing = trace;
            Result out = job.run();
            sum.add(out);
            if (out.fault.empty()) continue;
            printf("seed %llu schedule %llu: %s\n%s", static_cast<unsigned long long>(seed + i),
                   static_cast<unsigned long long>(k), out.fault.c_str(), one.program.text().c_str());
            return 1;
        }
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    printf("seeds %llu..%llu: %s, %.1f s\n", static_cast<unsigned long long>(seed),
           static_cast<unsigned long long>(seed + programs - 1), sum.text().c_str(), seconds);
    return 0;
}
