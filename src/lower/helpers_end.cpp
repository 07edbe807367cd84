#include "lower/helpers_end.h"

#include <algorithm>

#include "split/process/children.h"

namespace fermata {
namespace {

constexpr uint64_t kPatienceNs = 2'000'000'000;
// The parent learns of the end, and reads what the child has left in its pipe.
constexpr uint64_t kLastWordsNs = 20'000'000;
// Some are never asked for; whoever does ask is mostly a thread that waits for the end. No other process
// would hear how this one has ended.
constexpr uint64_t kToBeAskedNs = 300'000'000;

}  // namespace

bool HelpersEnd::reached(uint64_t now_ns) {
    std::set<int> running, there;
    for (const split::process::Child& child : split::process::children()) {
        there.insert(child.pid);
        const bool seen = awaited_.count(child.pid) > 0;
        const uint64_t ended =
            child.ended && !seen ? ended_.try_emplace(child.pid, now_ns).first->second : now_ns;
        if (now_ns - ended > kToBeAskedNs) continue;
        if (!lasting_.count(child.pid)) running.insert(child.pid);
    }
    std::erase_if(ended_, [&](const auto& one) { return !there.count(one.first); });
    std::erase_if(lasting_, [&](int pid) { return !there.count(pid); });
    if (running.empty() && !since_) return true;
    if (!since_) since_ = now_ns;
    if (now_ns - since_ > kPatienceNs) {
        lasting_.insert(running.begin(), running.end());
        running.clear();
        last_ = 0;
    }
    if (!running.empty()) {
        for (int pid : running)
            if (!ended_.count(pid)) awaited_.insert(pid);
        last_ = now_ns;
        return false;
    }
    if (now_ns - last_ < kLastWordsNs) return false;
    awaited_.clear();
    since_ = 0;
    return true;
}

}  // namespace fermata
